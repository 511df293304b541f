"""What all artefacts of a release share: version, date, changes, and the sources of a commit. Standard library only."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PRODUCTS = ("libusher.so.0", "libusher.so.debug", "usher-guardian")
"""The files that scripts/build-library writes and that packages contain."""
UNRELEASED = "not released yet"


def fail(message: str) -> NoReturn:
    print(f"usher: {message}", file=sys.stderr)
    sys.exit(1)


def run(command: list[str], limit_s: float = 900, log: Path | None = None, **options: object) -> None:
    """Runs a command, and writes its output to `log` if that is set. If the command fails, prints the last 60 lines of
    the output and ends this program."""
    done = subprocess.run(  # type: ignore[call-overload]
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=limit_s,
        umask=0o022,
        **options,
    )
    output = done.stdout.decode("utf-8", "replace")
    if log:
        log.write_text(output, encoding="utf-8")
    if done.returncode:
        print("\n".join(output.splitlines()[-60:]), file=sys.stderr)
        fail(f"failed: {' '.join(command)}" + (f" (whole output: {log})" if log else ""))


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Section:
    """The section of CHANGELOG.md about one version."""

    version: str
    released: str
    """The date as YYYY-MM-DD; empty if the version is not released yet."""
    changes: tuple[str, ...]
    """The items of the lists: plain text without links, one line each."""


def plain(text: str) -> str:
    """Returns a Markdown text without links and code marks, on one line."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return text.replace("`", "").replace("**", "")


def changes(text: str) -> list[Section]:
    """Returns the sections in the text of CHANGELOG.md; the newest version comes first."""
    found = []
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        matched = re.fullmatch(rf"(\d+\.\d+\.\d+) \((?:{UNRELEASED}|(\d{{4}}-\d\d-\d\d))\)", heading)
        if not matched:
            fail(f"CHANGELOG.md: the heading '{heading}' is not 'VERSION (YYYY-MM-DD)' or 'VERSION ({UNRELEASED})'")
        items = re.findall(r"^- (.*(?:\n+  .*)*)", body, re.M)
        found.append(Section(matched[1], matched[2] or "", tuple(plain(item) for item in items)))
    return found


@dataclass(frozen=True)
class Source:
    """The sources of a commit, and what the packages contain about them: version, time, maintainer and changelog."""

    commit: str
    version: str
    """The version in base.h. If it is not released yet: `0.1.0~gitDATE.COMMIT`, which Debian sorts before `0.1.0`."""
    epoch: int
    """The time of the commit, which all files in the artefacts have (SOURCE_DATE_EPOCH)."""
    maintainer: str
    """The author of the commit: NAME <ADDRESS>."""
    sections: tuple[Section, ...]

    @property
    def name(self) -> str:
        return f"usher-{self.version}"

    def unpack(self, folder: Path) -> Path:
        """Writes the files of the commit to a new folder `name` below `folder`, and returns this folder."""
        shutil.rmtree(folder / self.name, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"{self.name}.tar"
        run(["git", "archive", f"--prefix={self.name}/", f"--output={archive}", self.commit], cwd=ROOT)
        run(["tar", "--extract", f"--file={archive}", f"--directory={folder}"])
        archive.unlink()
        return folder / self.name


def source(commit: str = "HEAD") -> Source:
    commit = git("rev-parse", "--verify", f"{commit}^{{commit}}")
    header = git("show", f"{commit}:include/usher/base.h")
    numbers = re.findall(r"^#define USHER_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M)
    version = ".".join(numbers)
    sections = tuple(changes(git("show", f"{commit}:CHANGELOG.md")))
    if not sections or sections[0].version != version:
        fail(f"CHANGELOG.md does not begin with version {version} of include/usher/base.h")
    epoch, date, author = git(
        "show", "--no-patch", "--format=%ct%n%cd%n%an <%ae>", "--date=format:%Y%m%d", commit
    ).split("\n")
    if not sections[0].released:
        version += f"~git{date}.{commit[:7]}"
    return Source(commit, version, int(epoch), author, sections)


def clean_environment(source: Source, **more: str) -> dict[str, str]:
    """Returns the environment of a build: fixed values, and of the user's variables only HOME, TMPDIR and those for
    pip, TLS certificates and proxies. Debian's own programs come first on the PATH."""
    folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    swift = shutil.which("swift")
    if swift:
        folders.append(str(Path(swift).parent))
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "http", "https"))}
    fixed = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": ":".join(folders), "SOURCE_DATE_EPOCH": str(source.epoch)}
    return {**kept, **fixed, "SWIFT_BACKTRACE": "enable=no", **more}


def is_prebuilt(folder: Path) -> bool:
    return all((folder / name).is_file() for name in PRODUCTS)


def normalise(archive: Path, epoch: int) -> None:
    """Writes a .tar.gz again so that its bytes depend only on the names, contents and modes of its files."""
    plain = io.BytesIO()
    with tarfile.open(archive) as before, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as after:
        for member in sorted(before.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "root", "root"
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            after.addfile(member, before.extractfile(member) if member.isreg() else None)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", 9, file, epoch) as packed:
        packed.write(plain.getvalue())
