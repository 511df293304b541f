#!/usr/bin/env python3
"""Runs the commands of the pages in docs/tutorial, each page with a head-end of its own.

    tutorial.py

Takes the programs in `sh` from the page and from the parts that it includes, and runs them in the folder of the
repository. Instead of /tmp/usher and port 8090 they use a temporary folder and a free port. At
the end the head-end must have seen the requests of one playback, in order, and hold no session. A code block that no
test runs is a failure. Prints one line per claim, "ok - ..." or "not ok - ...". Standard library only.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from pathlib import Path

from served import ROOT, asked, free_port, held_sessions, run

TUTORIAL = ROOT / "docs" / "tutorial"
AT_MOST_S = 100
ORDER = ["setup", "license", "teardown"]


def commands(page: Path) -> str:
    text = re.sub(
        r"^```\{include\} (\S+)\n```$", lambda found: (TUTORIAL / found[1]).read_text(), page.read_text(), flags=re.M
    )
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
    return "\n".join(blocks)


def unrun() -> tuple[int, list[str]]:
    """Returns how many code blocks the pages and their parts have, and those that no test runs. Programs are included
    from files; tests run these files."""
    count, wrong = 0, []
    for part in sorted([*TUTORIAL.glob("*.md"), *TUTORIAL.glob("*.txt")]):
        for language in re.findall(r"^```(.*?)\n.*?^```$", part.read_text(encoding="utf-8"), re.M | re.S):
            count += not language.startswith("{")
            if language != "sh" and not language.startswith("{"):
                wrong.append(f"{part.name}: a block of the kind {language or 'none'}")
    return count, wrong


def failures(page: Path, folder: Path) -> list[str]:
    """Returns what was wrong with a page; nothing if all was right."""
    port = free_port()
    script = commands(page).replace("/tmp/usher", str(folder)).replace("8090", str(port))
    output_file = folder / "output"
    code, group = run(script, output_file, AT_MOST_S)
    try:
        told = output_file.read_text(encoding="utf-8", errors="replace")
        if code != 0:
            return [f"exit code {code}", *told.splitlines()[-5:]]
        routes = [entry["route"] for entry in asked(port, "journal")["entries"]]
        held = held_sessions(port)
        wrong = [] if [route for route in routes if route in ORDER] == ORDER else [f"the journal has {routes}"]
        wrong += [f"the head-end still holds {held} sessions"] if held else []
        wrong += [] if "a licence of" in told else told.splitlines()[-5:]
        return wrong
    finally:
        os.killpg(group, signal.SIGTERM)


def main() -> int:
    failed = 0
    pages = sorted(page for page in TUTORIAL.glob("*.md") if page.stem != "index")
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            wrong = failures(page, Path(folder))
        print(f"{'not ok' if wrong else 'ok'} - the commands of docs/tutorial/{page.name} play under a session")
        for line in wrong:
            print(f"    {line}")
        failed += bool(wrong)
    count, wrong = unrun()
    print(f"{'not ok' if wrong or not count else 'ok'} - a test runs each of the {count} code blocks of docs/tutorial")
    for line in wrong:
        print(f"    {line}")
    failed += bool(wrong or not count)
    if not pages:
        print("not ok - docs/tutorial has no pages")
    return 1 if failed or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
