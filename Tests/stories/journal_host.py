"""A host with a journal that plays one item until something kills it. test_journal.py starts it as a child process.

Reads one line of JSON: the head-end's URLs, a content token and the options of the context. Prints "playing" when the
session has started. After that each line of input is a command. A number moves the clock of the context by this many
milliseconds; then the host prints "moved", and the texts of the events JOURNAL_ERROR since the previous command. "fork"
makes a child process, which prints "forked" and lives until its standard input ends.
"""

from __future__ import annotations

import json
import os
import sys

import usher


def main() -> None:
    given = json.loads(sys.stdin.readline())
    options = dict(given["context"])
    if key := options.pop("journal_key", None):
        options["journal_key"] = bytes.fromhex(key)
    context = usher.Context(clock="manual", proxy="", **options)
    delegate = usher.SSPDelegate(
        context, license_url=given["license_url"], ssm_url=given["ssm_url"], jitter_permille=usher.OFF
    )
    errors: list[str] = []
    context.add_observer(
        lambda event: errors.append(str(event.error)) if event.type is usher.EventType.JOURNAL_ERROR else None
    )
    player = usher.Player(context)
    playback = player.play(given["token"], delegate=delegate)
    playback.wait_session()
    print("playing", flush=True)
    for line in sys.stdin:
        if line.strip() == "fork":
            if os.fork() == 0:
                print("forked", flush=True)  # printed by the child, after its fork() handlers have run
                os.read(0, 1)  # waits for the end of the input: the test sends no more lines
                os._exit(0)
        else:
            context.advance(int(line), settle_ms=10_000)
            print("moved", *errors, flush=True)
            errors.clear()


if __name__ == "__main__":
    main()
