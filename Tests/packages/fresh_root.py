"""A new Debian system in a folder: only Debian's smallest set of packages, and this machine's package sources.

debootstrap makes it once; build/roots keeps it as an archive. Each test unpacks a copy. Commands run in the copy with
chroot, in a mount namespace of their own, so that nothing stays mounted. Needs root and the package debootstrap.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ROOT / "build" / "roots"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
COPIED = ("etc/pip.conf", "etc/resolv.conf", "etc/hosts", CERTIFICATES)
"""Files of this machine that say how to reach the package sources."""
ENTER = """
mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" /bin/bash -euo pipefail -c "$1"
"""


def os_release(name: str) -> str:
    found = re.search(rf"^{name}=\"?(.*?)\"?$", Path("/etc/os-release").read_text(encoding="utf-8"), re.M)
    if not found:
        raise SystemExit(f"/etc/os-release has no {name}: this is no Debian system")
    return found[1]


def mirror() -> str:
    """Returns the address of the package mirror of this machine."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    found = re.search(r"^(?:URIs: *|deb (?:\[[^]]*\] )?)(\S+)", text, re.M)
    if not found:
        raise SystemExit("/etc/apt names no package mirror")
    return found[1]


def archive() -> Path:
    """Returns the archive of a new system; makes it if it is not there."""
    suite = os_release("VERSION_CODENAME")
    kept = ROOTS / f"{suite}.tar"
    if kept.exists():
        return kept
    ROOTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOTS) as folder:
        new = Path(folder, "new")
        command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, str(new), mirror()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
        if done.returncode:
            raise SystemExit(f"debootstrap failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        for file in (new / "var" / "cache" / "apt" / "archives").glob("*.deb"):
            file.unlink()
        subprocess.run(["tar", "--create", f"--file={kept}.new", f"--directory={new}", "."], check=True, timeout=300)
    Path(f"{kept}.new").rename(kept)
    return kept


class FreshRoot:
    """A copy of the new system, which exists inside a `with` block."""

    def __init__(self) -> None:
        kept = archive()
        self.path = Path(tempfile.mkdtemp(dir=ROOTS, prefix="root-"))
        subprocess.run(["tar", "--extract", f"--file={kept}", f"--directory={self.path}"], check=True, timeout=300)
        self._take_package_sources()

    def _take_package_sources(self) -> None:
        apt = self.path / "etc" / "apt"
        (apt / "sources.list").unlink(missing_ok=True)
        for name in ("sources.list.d", "apt.conf.d", "auth.conf.d"):
            if Path("/etc/apt", name).is_dir():
                shutil.copytree(Path("/etc/apt", name), apt / name, dirs_exist_ok=True)
        if Path("/etc/apt/sources.list").is_file():
            shutil.copy("/etc/apt/sources.list", apt)
        for copied in COPIED:
            if Path("/", copied).is_file():
                shutil.copy(Path("/", copied), self.path / copied)
        shutil.copy(Path("/", CERTIFICATES), self.path / "machine.crt")  # packages do not overwrite this copy

    def run(self, script: str, limit_s: float = 900) -> subprocess.CompletedProcess[str]:
        """Runs a bash script in the new system, and returns how it ended and what it printed. Of this machine's
        environment variables, the script gets only those for package sources."""
        passed = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        passed |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        environment = {**passed, "HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        environment |= {"DEBIAN_FRONTEND": "noninteractive", "PIP_CERT": "/machine.crt", "TERM": "dumb"}
        command = ["unshare", "--mount", "sh", "-c", ENTER, str(self.path), script]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL
        )

    def __enter__(self) -> FreshRoot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["rm", "--recursive", "--force", "--one-file-system", str(self.path)], check=True)
