"""The classes of usher.aio have every public name of the classes that they stand for."""

from __future__ import annotations

import inspect

import pytest

import usher
import usher.aio

WITHOUT = {
    "Context": {
        # The event loop pumps the context, so the program does not.
        "pump",
        "pump_fd",
        # Programs call these methods of `context.blocking`, which is a usher.Context.
        "advance",
        "jump",
        "settle",
        "pending",
        "metrics",
        # Programs use `await context.close()` instead of these methods.
        "shutdown",
        "begin_close",
    },
    # In usher, these methods pass the answer to a callback. In usher.aio, a coroutine instead awaits get_license(),
    # get_certificate(), get_content_id() and get_resource().
    "Playback": {"request_license", "request_certificate", "request_content_id", "load_resource"},
}
"""For each class, the public names that the class of the same name in usher.aio does not have."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def pairs() -> list[str]:
    both = sorted(set(dir(usher)) & set(dir(usher.aio)))
    kinds = [(name, getattr(usher, name), getattr(usher.aio, name)) for name in both]
    return [name for name, here, there in kinds if inspect.isclass(here) and here is not there]


@pytest.mark.parametrize("name", pairs())
def test_class_inAio_hasTheNamesOfItsNamesake(name: str) -> None:
    missing = public(getattr(usher, name)) - public(getattr(usher.aio, name))
    assert missing == WITHOUT.get(name, set())


def test_everyExceptedClass_isInAio() -> None:
    assert WITHOUT.keys() <= set(pairs())
