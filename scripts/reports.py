"""Reads the reports of the sanitizers and valgrind, and selects those about libusher. Standard library only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

OURS = re.compile(r"libusher|\$[se]\d+Usher|\busher_[a-z]|\w\.swift\b")
"""Matches a stack frame of the library, by object, symbol or file."""
INTERPRETER = re.compile(r"\b_?Py[A-Z_]\w*|\bpython3?\b|libpython|libffi|\bffi_|_ctypes")
FRAME = re.compile(r"^\s*(#\d+ |at 0x|by 0x)")


@dataclass
class Report:
    """One report of a sanitizer or of valgrind, word for word."""

    text: str

    @property
    def title(self) -> str:
        """One line: what happened, and the first frame of the library."""
        lines = self.text.splitlines()
        what = next((line for line in lines if re.search(r"ERROR:|WARNING:|leak of|lost", line)), lines[0]).strip(" =")
        frame = next((line for line in lines if FRAME.match(line) and OURS.search(line)), "")
        return re.sub(r"0x\w+", "0x...", what) + (f": {place_of(frame)}" if frame else "")

    @property
    def is_ours(self) -> bool:
        """Whether the report has a stack in which a frame of the library comes before every frame of the Python
        interpreter.

        A stack begins with the innermost call. If the interpreter's frames come first, the fault is in a Python
        callback, not in libusher.
        """
        inside = True
        for line in self.text.splitlines():
            if not FRAME.match(line):
                inside = True
            elif inside and INTERPRETER.search(line):
                inside = False
            elif inside and OURS.search(line):
                return True
        return False


def place_of(frame: str) -> str:
    """Returns a stack frame's text without its number, address and object file."""
    return re.sub(
        r"^\s*(#\d+ (0x\w+ in )?|(at|by) 0x\w+: )|\s*\((libusher\S*|BuildId:.*)\)?$",
        "",
        re.sub(r" \(BuildId: .*", "", frame),
    ).strip()


def reports_of(files: list[Path]) -> list[Report]:
    return [
        Report(text) for file in sorted(files) for text in split(file.read_text(encoding="utf-8", errors="replace"))
    ]


def split(text: str) -> list[str]:
    """Returns the reports in a tool's output.

    ThreadSanitizer puts each report between lines of "="; reports of leaks and of valgrind are paragraphs;
    AddressSanitizer writes only one error, because it then ends the process.
    """
    text = re.sub(r"^==\d+== ?", "", text, flags=re.M)
    found = []
    for part in re.split(r"^={18,}$", text, flags=re.M):
        if (
            "WARNING: ThreadSanitizer:" in part
            or "ERROR: ThreadSanitizer:" in part
            or "ERROR: AddressSanitizer:" in part
        ):
            found.append(part.strip())
        else:
            paragraphs = re.split(r"\n[ \t]*\n", part)
            found += [
                paragraph.strip("\n")
                for paragraph in paragraphs
                if any(FRAME.match(line) for line in paragraph.splitlines())
            ]
    return found
