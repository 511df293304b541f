"""Bundles libusher.so: `pip install ./bindings/python` and `pip wheel` build it from the checkout, which needs Swift 6.
The source distribution has the sources of the library in its folder `native`, and builds it in the same way.

These builds run scripts/build-library, or bundle the library that the environment variable USHER_PREBUILT names. With
USHER_PREBUILT=none the wheel has no library and fits every platform; it has the reference head-end, and uses a libusher
that the system has installed. An editable install builds no library: it uses the library that USHER_LIBRARY names. A
wheel with a library works with every Python 3 of its platform, since ctypes loads the library. libcurl and json-c come
from the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import SetupError

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1, as in Debian 12
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
NATIVE = HERE / "native"
ROOT = NATIVE if NATIVE.is_dir() else HERE.parents[1]
SCRIPT = ROOT / "scripts" / "build-library"
NATIVE_SOURCES = ("LICENSE", "Package.swift", "Sources", "guardian", "include", "scripts/build-library")
"""What scripts/build-library needs of the repository."""
NAME = "libusher.so.0"
GUARDIAN = "usher-guardian"
"""A program that the library starts; the library looks for it in its own folder."""
WITHOUT_LIBRARY = os.environ.get("USHER_PREBUILT") == "none"


def built_library(folder: Path) -> Path:
    """Returns the library to bundle; builds it into `folder` unless USHER_PREBUILT names one."""
    prebuilt = os.environ.get("USHER_PREBUILT")
    if prebuilt:
        return Path(prebuilt)
    if not SCRIPT.is_file():
        raise SetupError(
            "this folder has no sources of the library, so the library cannot be built: "
            "install a wheel, or set USHER_PREBUILT to a libusher.so, or to none if you need only the head-end"
        )
    if shutil.which("swift") is None:
        raise SetupError(
            "there is no Swift on the PATH to build libusher.so with: set USHER_PREBUILT to a libusher.so, or to none "
            "if you need only the head-end or have installed the library"
        )
    try:
        subprocess.run([str(SCRIPT), "shipped", str(folder)], check=True)
    except subprocess.CalledProcessError:
        raise SetupError("building libusher.so failed: see above") from None
    return folder / NAME


class BuildWithLibrary(build_py):
    """The build_py command, which also copies the library into the folder of the modules."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(
                self.build_lib, ignore_errors=True
            )  # otherwise the wheel would also contain the library of an earlier build
        super().run()
        if self.editable_mode or WITHOUT_LIBRARY:
            return
        with tempfile.TemporaryDirectory() as folder:
            library = built_library(Path(folder))
            for source, name in ((library, NAME), (library.resolve().parent / GUARDIAN, GUARDIAN)):
                target = Path(self.build_lib, "usher", name)
                if not source.is_file():
                    raise SetupError(f"{source} is missing: it must be in the folder of the library")
                shutil.copyfile(source, target)
                target.chmod(0o755)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        names = [] if self.editable_mode or WITHOUT_LIBRARY else [NAME, GUARDIAN]
        return [*super().get_outputs(include_bytecode), *(str(Path(self.build_lib, "usher", name)) for name in names)]


class SourceWithLibrary(sdist):
    """The sdist command, which also copies the sources of the library."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        for name in NATIVE_SOURCES:
            source, target = ROOT / name, Path(base_dir, "native", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copy(source, target)


class PlatformWheel(bdist_wheel):
    """The bdist_wheel command, for every Python 3: with a library for this platform, without one for any platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", "any" if WITHOUT_LIBRARY else super().get_tag()[2])


class Binary(Distribution):
    """A distribution that contains a library of this platform."""

    def has_ext_modules(self) -> bool:
        return not WITHOUT_LIBRARY


setup(
    cmdclass={"build_py": BuildWithLibrary, "sdist": SourceWithLibrary, "bdist_wheel": PlatformWheel},
    distclass=Binary,
)
