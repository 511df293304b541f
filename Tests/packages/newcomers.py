#!/usr/bin/env python3
"""What a newcomer does with the built packages, in a fresh Debian: no Swift, and a compiler only for the player.

    Tests/packages/newcomers.py [--debs FOLDER] [--wheels FOLDER]

A player developer, an integrator and a tester install the packages and run the ten lines of docs/packaging.md. The
journal of the packaged head-end shows what arrived. Prints the times. At the end the packages are purged, and nothing
may be left. Needs root, debootstrap, and `make debs wheels`. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fresh_root import ROOT, FreshRoot

sys.path.insert(0, str(ROOT / "scripts"))
import claims
from claims import check

MOST_LINES = 10
MOST_S = 300
"""The tester's test must pass within this time, from a Debian without any of our packages."""
KID, KEY = "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"
REQUEST = '{"kids":["ABEiM0RVZneImaq7zN3u_w"],"type":"temporary"}'
"""The Clear Key request for KID."""
HEAD_END = f"""
usher-headend --limit 1 --period 1 --account alice --key {KID}:{KEY} --ready-file /ready.json >/headend.log 2>&1 &
for try in $(seq 600); do [ -s /ready.json ] && break; sleep 0.1; done
field() {{
  python3 -c 'import json, sys; print(eval("ready" + sys.argv[1], dict(ready=json.load(open("/ready.json")))))' "$1"
}}
ssm=$(field '["ssm_url"]') keys=$(field '["license_urls"]["clearkey"]') token=$(field '["tokens"]["alice"]')
"""
JOURNAL = """
python3 -c "import sys, urllib.request; print('JOURNAL', urllib.request.urlopen(sys.argv[1]).read().decode())" \
  "$(field '["control_url"]')/journal"
kill %1; wait %1
"""


def program(language: str, about: str) -> str:
    """Returns the code in this language that contains the text `about`, from docs/packaging.md."""
    page = (ROOT / "docs" / "packaging.md").read_text(encoding="utf-8")
    found = [code for code in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S) if about in code]
    if len(found) != 1:
        raise SystemExit(f"docs/packaging.md has {len(found)} programs in {language} with '{about}' instead of one")
    lines = [line for line in found[0].splitlines() if line]
    check(len(lines) <= MOST_LINES, f"their own code: {len(lines)} lines of {language}")
    return str(found[0])


def put(root: FreshRoot, files: list[Path]) -> None:
    folder = root.path / "packages"
    folder.mkdir(exist_ok=True)
    for file in files:
        shutil.copy(file, folder)


def timed(root: FreshRoot, what: str, script: str) -> tuple[str, float]:
    begin = time.monotonic()
    done = root.run(script)
    took = time.monotonic() - begin
    check(done.returncode == 0, f"{what} ({took:.1f} s)", done.stdout + done.stderr)
    return done.stdout, took


def routes(output: str) -> list[str]:
    """Returns the routes of the requests that reached the head-end, from the journal in the output."""
    found = re.search(r"^JOURNAL (.*)$", output, re.M | re.S)
    if not found:
        return []
    journal = json.JSONDecoder().raw_decode(found[1])[0]
    entries = journal["entries"] if isinstance(journal, dict) else journal
    return [str(entry["route"]) for entry in entries]


def without_compiler(root: FreshRoot, names: str) -> None:
    done = root.run(f"for name in {names}; do command -v $name || true; done")
    check(done.returncode == 0 and not done.stdout, f"the system has none of {names}", done.stdout + done.stderr)


def everything(root: FreshRoot) -> set[str]:
    """Returns all files of the system, without those that every use of apt and Python leaves."""
    others = ("/packages", "/proc", "/dev", "/tmp", "/var/lib/dpkg", "/var/cache", "/var/log")
    pruned = " -o ".join(f"-path {folder} -prune" for folder in others)
    done = root.run(f"find / -xdev {pruned} -o -print")
    return set(done.stdout.splitlines())


def player(debs: Path) -> None:
    print("\nPlayer developer: C, with libusher-dev, against the packaged head-end")
    with FreshRoot() as root:
        put(root, sorted(debs.glob("*.deb")))
        without_compiler(root, "swift cc gcc clang")
        timed(root, "apt-get update", "apt-get -qq update")
        timed(
            root,
            "their tools: gcc and pkg-config",
            "apt-get -qq -y --no-install-recommends install gcc libc6-dev pkg-config",
        )
        _, install = timed(
            root,
            "apt install ./libusher-dev and python3-usher",
            "cd /packages && apt-get -qq -y install ./libusher0_*.deb ./libusher-dev_*.deb ./python3-usher_*.deb",
        )
        without_compiler(root, "swift")
        (root.path / "player.c").write_text(program("c", "usher_player_new"), encoding="utf-8")
        _, build = timed(root, "their ten lines compile", "cc player.c $(pkg-config --cflags --libs usher) -o player")
        play = f"""{HEAD_END} ./player "$ssm" "$keys" "$token" '{REQUEST}'; {JOURNAL}"""
        output, run = timed(root, "the player plays", play)
        heads = [route for route in routes(output) if route != "heartbeat"]
        check(heads == ["setup", "license", "teardown"], "the head-end saw set-up, licence and teardown", output)
        print(f"    install {install:.1f} s, compile {build:.1f} s, play {run:.1f} s")


def integrator(debs: Path) -> None:
    print("\nIntegrator: customer SSM callbacks in Python; then all packages are purged")
    with FreshRoot() as root:
        put(root, sorted(debs.glob("*.deb")))
        timed(root, "apt-get update", "apt-get -qq update")
        _, install = timed(
            root,
            "apt install python3-usher",
            "cd /packages && apt-get -qq -y install ./libusher0_*.deb ./python3-usher_*.deb",
        )
        without_compiler(root, "swift cc gcc clang usher")
        (root.path / "portal.py").write_text(program("python", "CustomerDelegate"), encoding="utf-8")
        play = f'{HEAD_END} python3 portal.py "$ssm" "$keys" {KID} "$token"; {JOURNAL}'
        output, run = timed(root, "their ten lines play", play)
        found = routes(output)
        check(
            found[:2] == ["setup", "license"] and found[-1:] == ["teardown"] and "heartbeat" in found,
            f"the head-end saw set-up, licence, heartbeats ({found.count('heartbeat')}) and teardown",
            output,
        )
        print(f"    install {install:.1f} s, play {run:.1f} s")

        before = root.run("dpkg-query --show --showformat '${Package}\\n'").stdout
        timed(
            root,
            "apt install the other packages",
            "cd /packages && apt-get -qq -y --no-install-recommends install ./usher-tools_*.deb ./libusher-dev_*.deb",
        )
        timed(
            root,
            "the library finds the packaged guardian",
            "python3 -c 'import usher; usher.Context(guardian=\"required\").close()'",
        )
        timed(
            root,
            "the program usher starts, and starts the commands in Python",
            "usher --version && usher run --help >/dev/null && usher explain 1007 ssm",
        )
        timed(root, "manual pages are installed", "ls /usr/share/man/man1/usher.1.gz || grep -r path-exclude /etc/dpkg")
        ours = "libusher0 libusher-dev usher-tools python3-usher"
        timed(root, "apt purge", f"apt-get -qq -y purge {ours} && apt-get -qq -y --purge autoremove")
        left = sorted(name for name in everything(root) if "usher" in name.rpartition("/")[2].lower())
        check(left == [], "purge leaves no file behind", "\n".join(left))
        known = root.run(f"dpkg-query --show {ours} 2>/dev/null || true").stdout
        check(known == "", "purge leaves no package state behind", known)
        check("python3-usher" in before, "(they were installed before)", before)


def tester(wheels: Path) -> None:
    print("\nTester: pytest-usher from wheels, a second screen is refused")
    with FreshRoot() as root:
        put(root, [*wheels.glob("libusher-*manylinux*.whl"), *wheels.glob("pytest_usher-*.whl")])
        begin = time.monotonic()
        timed(root, "apt-get update", "apt-get -qq update")
        timed(root, "Python", "apt-get -qq -y --no-install-recommends install python3-venv && python3 -m venv /venv")
        pip = "/venv/bin/pip install --quiet --disable-pip-version-check"
        _, install = timed(
            root, "pip install both wheels", f"cd /packages && {pip} ./pytest_usher-*.whl ./libusher-*.whl"
        )
        lacking = root.run("/venv/bin/python -c 'import usher; usher.Context'")
        check(
            lacking.returncode != 0 and "Debian: libcurl4 libjson-c5" in lacking.stderr,
            "without libcurl the error names the packages",
            lacking.stderr,
        )
        timed(
            root,
            "apt install libcurl4 libjson-c5",
            "apt-get -qq -y --no-install-recommends install libcurl4 libjson-c5",
        )
        without_compiler(root, "swift cc gcc clang")
        (root.path / "test_limit.py").write_text(program("python", "LimitError"), encoding="utf-8")
        output, run = timed(
            root, "their ten lines are green", "/venv/bin/python -m pytest -q -p no:cacheprovider test_limit.py"
        )
        check("1 passed" in output, "pytest counts one test that passed", output)
        took = time.monotonic() - begin
        check(took <= MOST_S, f"from nothing to green in {took:.0f} s: not more than {MOST_S} s")
        print(f"    pip install {install:.1f} s, pytest {run:.1f} s, everything {took:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--debs", type=Path, default=ROOT / "build" / "debs")
    parser.add_argument("--wheels", type=Path, default=ROOT / "build" / "wheels")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("fresh roots need root: sudo make test-packages")
    begin = time.monotonic()
    newcomers: list[tuple[Callable[[Path], None], Path]] = [
        (player, arguments.debs),
        (tester, arguments.wheels),
        (integrator, arguments.debs),
    ]
    for newcomer, packages in newcomers:
        newcomer(packages)
    print(f"\n{time.monotonic() - begin:.0f} s. {claims.verdict()}")
    return 1 if claims.failed else 0


if __name__ == "__main__":
    sys.exit(main())
