#!/usr/bin/env python3
"""Builds the release of HEAD twice, in clones in different folders, and checks that both have the same bytes.

If the version is not released yet, the script first cuts the release in a clone. The second build has another umask,
time zone, language and home folder. Then the script checks the checksums, the bill of materials against CycloneDX's
schema, the source distribution, and a signature by a key that it makes for this run. Needs Swift 6 and .venv-release
(`make test-release`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import claims  # noqa: E402
from claims import check  # noqa: E402

TOOLS = ROOT / ".venv-release"
SECOND = {"TZ": "Asia/Tokyo", "LANG": "C", "LC_ALL": "C", "USER": "somebody"}

SIGNER = "release@localhost"
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)
"""


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    options.setdefault("timeout", 3000)
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)


def prepare(clone: Path, environment: dict[str, str]) -> None:
    """Clones HEAD. If its version is not released yet, checks that it cannot be signed, and then cuts the release."""
    run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    changelog = clone / "CHANGELOG.md"
    if "(not released yet)" not in changelog.read_text(encoding="utf-8"):
        return
    script = str(clone / "scripts" / "build-release")
    done = run([script, "--key", SIGNER], env=environment)
    check(done.returncode != 0 and "only a release is signed" in done.stderr, "what is no release is not signed", done)
    run([script, "--cut", "2030-01-02"], check=True)
    headings = re.findall(r"^## .*$", changelog.read_text(encoding="utf-8"), re.M)
    check(headings[0].endswith(" (2030-01-02)"), "--cut writes the date into CHANGELOG.md", headings[0])
    identity = ["-c", "user.name=Release", "-c", f"user.email={SIGNER}"]
    run(["git", *identity, "commit", "--quiet", "--all", "--message", "release: cut"], cwd=clone, check=True)


def release(origin: Path, folder: Path, *arguments: str, **options: Any) -> Path:
    """Clones `origin` into the folder and builds the release there. Returns the folder with its files."""
    run(["git", "clone", "--quiet", str(origin), str(folder)], check=True)
    (folder / ".venv-release").symlink_to(TOOLS)
    begin = time.monotonic()
    done = run([str(folder / "scripts" / "build-release"), *arguments], **options)
    check(done.returncode == 0, f"the release builds ({time.monotonic() - begin:.0f} s)", done.stdout + done.stderr)
    return folder / "build" / "release"


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def check_bill(folder: Path) -> None:
    (file,) = folder.glob("*.cdx.json")
    done = run([str(TOOLS / "bin" / "python"), "-c", VALIDATE, str(file)])
    check(done.returncode == 0, "the bill of materials obeys the schema of CycloneDX 1.5", done.stderr)
    found = {each["name"]: each["version"] for each in json.loads(file.read_bytes())["components"]}
    for package, name in (("libcurl4", "libcurl"), ("libjson-c5", "json-c"), ("libc6", "glibc")):
        installed = run(["dpkg-query", "--show", "--showformat=${Version}", package]).stdout
        check(found.get(name) == installed, f"it has {name} {installed}", found)
    swift = re.search(r"Swift version ([0-9.]+)", run(["swift", "--version"]).stdout)
    version = swift[1] if swift else "?"
    check(found.get("Swift standard library (Embedded)") == version, f"it has Swift {version}", found)


def check_source_distribution(folder: Path, work: Path) -> None:
    """Without Swift, pip says what is missing; with Swift it builds a wheel."""
    (archive,) = folder.glob("libusher-*.tar.gz")
    run(["tar", "--extract", f"--file={archive}", f"--directory={work}"], check=True)
    (tree,) = work.glob("libusher-*")
    command = [
        str(TOOLS / "bin" / "python"),
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        str(work),
        str(tree),
    ]
    done = run(command, env={"PATH": "/usr/bin:/bin", "HOME": str(work)})
    said = done.stdout + done.stderr
    check(done.returncode != 0 and "there is no Swift on the PATH" in said, "sdist: without Swift it says so", said)
    done = run(command)
    wheels = list(work.glob("*.whl"))
    if not check(
        done.returncode == 0 and len(wheels) == 1, "sdist: with Swift it builds a wheel", done.stdout + done.stderr
    ):
        return
    where = "import usher, usher._c.ffi as ffi; print(ffi.find_library(), usher.library_version())"
    run(["unzip", "-q", str(wheels[0]), "-d", str(work / "site")], check=True)
    done = run([sys.executable, "-c", where], env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(work / "site")})
    check(
        done.stdout.startswith(f"{work}/site/usher/libusher.so.0 "),
        "sdist: its library loads",
        done.stdout + done.stderr,
    )
    built, released = work / "site" / "usher" / "libusher.so.0", folder / "work" / "built" / "libusher.so.0"
    check(built.read_bytes() == released.read_bytes(), "sdist: its library is the released one, byte for byte")


def make_key(home: Path) -> dict[str, str]:
    """Makes a key for this run. Returns the environment in which gpg uses it."""
    home.mkdir(mode=0o700)
    environment = {**os.environ, "GNUPGHOME": str(home)}
    command = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", f"Release <{SIGNER}>", "ed25519", "sign"]
    run(command, env=environment, check=True)
    return environment


def check_signature(folder: Path, environment: dict[str, str]) -> None:
    verify = ["gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS"]
    done = run(verify, cwd=folder, env=environment)
    check(done.returncode == 0, "gpg verifies the signature", done.stderr)
    done = run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder)
    check(done.returncode == 0, "sha256sum verifies the files", done.stdout + done.stderr)
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text(encoding="utf-8").replace("a", "b", 1), encoding="utf-8")
    done = run(verify, cwd=folder, env=environment)
    check(done.returncode != 0 and "BAD signature" in done.stderr, "gpg refuses changed check sums", done.stderr)
    run(["gpgconf", "--kill", "all"], env=environment)


def main() -> int:
    work = Path(tempfile.mkdtemp(prefix="usher-release-"))
    try:
        begin = time.monotonic()
        signing = make_key(work / "gnupg")
        origin = work / "origin"
        prepare(origin, signing)
        first = release(origin, work / "first", "--key", SIGNER, env=signing)
        home = work / "home"
        home.mkdir()
        environment = {**os.environ, **SECOND, "HOME": str(home)}
        second = release(origin, work / "another" / "folder" / "second", env=environment, umask=0o077)
        one, two = files(first), files(second)
        check(one.pop("SHA256SUMS.asc", b"") != b"", "the first is signed")
        check(len(one) >= 12, f"the release has {len(one)} files", sorted(one))
        check(set(one) == set(two), "both builds have the same files", set(one) ^ set(two))
        different = sorted(name for name in one if one[name] != two.get(name))
        check(different == [], "both builds have the same bytes", different)
        versions = [name for name in one if re.fullmatch(r"libusher0_[0-9.]+-\w+_amd64.deb", name)]
        check(len(versions) == 1, "the version of the packages is no snapshot", sorted(one))
        listed = dict(line.split("  ")[::-1] for line in one["SHA256SUMS"].decode().splitlines())
        real = {name: hashlib.sha256(data).hexdigest() for name, data in one.items() if name != "SHA256SUMS"}
        check(listed == real, "SHA256SUMS has every file")
        check_bill(first)
        check_source_distribution(first, work / "another")
        check_signature(first, signing)
        print(f"{time.monotonic() - begin:.0f} s. {claims.verdict()}")
    finally:
        shutil.rmtree(work)
    return 1 if claims.failed else 0


if __name__ == "__main__":
    sys.exit(main())
