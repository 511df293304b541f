"""The Conan recipe of libusher: `conan create packaging/conan`. docs/packaging.md describes it.

libcurl and json-c come from the system, as in all packages of libusher.
"""

from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException, ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt, Dnf

SOURCES = (
    "CHANGELOG.md", "CMakeLists.txt", "LICENSE", "Package.swift", "Sources/*", "cmake/*", "guardian/*", "include/*",
    "scripts/build-library",
)  # fmt: skip


class Libusher(ConanFile):
    name = "libusher"
    license = "Apache-2.0"
    description = "DRM licences and concurrent-stream sessions (SSM) for any video player"
    topics = ("drm", "streaming", "video")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self) -> None:
        header = Path(self.recipe_folder, "..", "..", "include", "usher", "base.h").read_text(encoding="utf-8")
        lines = [line.split() for line in header.splitlines() if line.startswith("#define USHER_VERSION_")]
        self.version = ".".join(words[2] for words in lines if words[1].endswith(("_MAJOR", "_MINOR", "_PATCH")))

    def export_sources(self) -> None:
        root = str(Path(self.recipe_folder, "..", ".."))
        for pattern in SOURCES:
            if not copy(self, pattern, root, self.export_sources_folder):
                raise ConanException(f"{pattern} is missing: this recipe belongs into packaging/conan of libusher")

    def validate(self) -> None:
        if (self.settings.os, self.settings.arch) != ("Linux", "x86_64"):
            raise ConanInvalidConfiguration("libusher is for Linux on x86_64")

    def configure(self) -> None:
        # Hosts use the library through its C interface, so the compiler of the host makes no difference.
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cppstd")

    def package_id(self) -> None:
        self.info.settings.rm_safe("compiler")
        self.info.settings.rm_safe("build_type")

    def system_requirements(self) -> None:
        Apt(self).install(["libcurl4-openssl-dev", "libjson-c-dev"])
        Dnf(self).install(["libcurl-devel", "json-c-devel"])

    def generate(self) -> None:
        toolchain = CMakeToolchain(self)
        prebuilt = self.conf.get("user.libusher:prebuilt", default="")
        toolchain.cache_variables["USHER_PREBUILT"] = prebuilt
        toolchain.generate()

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self) -> None:
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder, "licenses")))

    def package_info(self) -> None:
        self.cpp_info.libs = ["usher"]
        self.cpp_info.set_property("cmake_file_name", "Usher")
        self.cpp_info.set_property("cmake_target_name", "Usher::usher")
        self.cpp_info.set_property("pkg_config_name", "usher")
