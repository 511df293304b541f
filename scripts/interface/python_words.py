"""Rewrites comments of the headers for Python programmers: with Python's names instead of those of C, and without files
that a wheel lacks."""

from __future__ import annotations

import re

CAPITALS = {"ssp": "SSP", "v2": "V2"}
"""Words of C names that have more than one capital letter in Python names."""
FUNCTIONS = {
    "usher_clearkey_keys": "License.clear_keys()",
    "usher_complete_call": "SessionCall.answer()",
    "usher_complete_headers": "HookCall.answer()",
    "usher_complete_license": "CustomerRequest.answer()",
    "usher_context_add_loader": "ResourceLoader()",
    "usher_context_close": "Context.close()",
    "usher_context_free": "Context.close()",
    "usher_context_new": "Context()",
    "usher_customer_delegate_new": "CustomerDelegate()",
    "usher_delegate_set_customer_callbacks": "CustomerDelegate.set_callback()",
    "usher_player_free": "Player.close()",
    "usher_read_mp4": "read_mp4()",
}
"""The Python names of functions whose names do not follow from the C name."""
STRUCTURES = {"usher_error": "UsherError", "usher_response_info": "License"}
"""The Python classes of structures that are not options."""
PHRASES = {
    "usher_context_new() fails, and `refusal` and the log get the reason": "Context() raises an exception that has the "
    "reason, and the log gets it",
    "functions of content.h and clearkey.h": "the functions that read content and Clear Key licences",
}
"""Texts that are about C, and what Python programmers read instead."""


def class_name(c_name: str) -> str:
    """Makes a Python class name, e.g. SSPV2Options from usher_ssp_v2_options."""
    return "".join(CAPITALS.get(word, word.capitalize()) for word in c_name.removeprefix("usher_").split("_"))


def owner(name: str) -> str:
    """Returns the Python name of a C function, e.g. Playback.close() for usher_playback_close."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    for kind in ("context", "player", "playback", "delegate"):
        if name.startswith(f"usher_{kind}_"):
            return f"{kind.capitalize()}.{name.removeprefix(f'usher_{kind}_')}()"
    raise ValueError(f"{name}: add its Python name to FUNCTIONS in scripts/interface/python_words.py")


def _page(found: re.Match[str]) -> str:
    """Returns the words for a page of the manual, which a wheel does not contain."""
    the = "The" if re.search(r"(^|[.!?] )$", found.string[: found.start()]) else "the"
    return f"{the} manual's page `{found[1]}`"


def in_python(text: str) -> str:
    """Returns a comment with Python's names in place of C functions and structures, and with other words in place of
    the files of the manual."""
    for c_words, words in PHRASES.items():
        text = text.replace(c_words, words)
    text = re.sub(r"\b(usher_\w+)\(\)", lambda found: owner(found[1]), text)
    text = re.sub(r"\b(usher_\w+_options)\b", lambda found: f"``{class_name(found[1])}``", text)
    for c_name, name in STRUCTURES.items():
        text = re.sub(rf"\b{c_name}\b(\.\w+)?", rf"``{name}\1``", text)
    return re.sub(r"\bdocs/(\w+)\.md\b", _page, text)
