"""A Python process ends while the library works, or the user presses Ctrl-C while callbacks run."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

from stage import Stage
from usher._c import ffi, registry
from usher.testing.headend import HeadEnd

MAKER = """
    import random, sys, threading, time, warnings
    import usher
    warnings.simplefilter("ignore")
    url, ssm, seed = sys.argv[1:]
    random.seed(int(seed))
    kept = []

    def make():
        while True:
            try:
                context = usher.Context()
                delegate = usher.SSPDelegate(context, license_url=url, ssm_url=ssm)
                context.add_observer(lambda event: [random.random() for _ in range(50)])
                player = usher.Player(context)
                playback = player.play("content-token", delegate=delegate)
                for _ in range(5):
                    playback.request_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([bytes(16)]))
                kept.append((context, playback))
                if len(kept) > 3:
                    oldest = kept.pop(0)[0]
                    if random.random() < 0.5:
                        oldest.close()
                    del oldest
            except usher.UsherError:
                pass

    for _ in range(2):
        threading.Thread(target=make, daemon=True).start()
    time.sleep(0.1 + 0.1 * random.random())
    sys.exit(7)
"""


def run(script: str, *arguments: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "SWIFT_BACKTRACE": "enable=no"},
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("seed", range(4))
def test_daemonThreads_makeAndFreeContextsWhileThePythonProcessExits_itEndsWithItsExitCode(
    stage: Stage, seed: int
) -> None:
    """Daemon threads make, close and drop contexts without a pause while the main thread exits. The process ends with
    its own exit code and prints nothing."""
    headend: HeadEnd = stage.headend
    told = run(MAKER, headend.license_url("clearkey"), headend.ssm_url, str(seed))
    assert told == (7, "", "")


def test_context_madeByALaterExitHandler_isRefused() -> None:
    """An exit handler that runs after the exit handler of the package makes a context; the bindings refuse this with
    ClosedError."""
    script = """
        import atexit

        def make():
            try:
                usher.Context()
            except usher.ClosedError as error:
                print(error)

        atexit.register(make)
        import usher
        usher.Context().close()
    """
    assert run(script) == (0, "the interpreter exits: no context can be made\n", "")


def test_childOfFork_whoseParentHasAContext_exitsAtOnce() -> None:
    """A child of fork() ends with sys.exit(), which runs the exit handlers; the child does not wait for the callbacks
    of its parent."""
    script = """
        import os, sys, time, warnings
        import usher
        warnings.simplefilter("ignore")
        context = usher.Context()
        context.add_observer(print)
        # A command that the I/O thread runs during fork() has its only reference on the stack of this thread, which the
        # child does not have. So a leak checker would report this command when the child ends.
        context.settle()
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), time.monotonic() - begun < 5)
    """
    assert run(script) == (0, "7 True\n", "")


def test_interrupt_beforeTheFirstLineOfACallback_isRaisedByPump(stage_factory: Any) -> None:
    """SIGINT arrives between two callbacks of a pump. So Python raises KeyboardInterrupt at the first instruction of
    the second callback, outside every ``try``. pump() raises this exception, and the bindings keep no reference to the
    removed observer."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # this process may ignore SIGINT by default
    context = stage_factory(callbacks="pumped").context
    before = registry.count()
    interrupting = ctypes.cast(ctypes.CDLL(None)["raise"], ctypes.c_void_p).value
    assert interrupting
    event_type, destroy_type = ffi.lib.usher_context_add_observer.argtypes[1], registry.destroy.__class__
    nothing = event_type(lambda pointer, number: None)
    number = ctypes.c_uint64()
    for _ in range(20):
        ffi.lib.usher_context_add_observer(
            context._handle, nothing, int(signal.SIGINT), destroy_type(interrupting), ctypes.byref(number)
        )
        observer = context.add_observer(print)
        ffi.lib.usher_context_remove_observer(context._handle, number.value)
        observer.remove()
        with pytest.raises(KeyboardInterrupt):
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                context.pump()
    assert registry.count() == before
