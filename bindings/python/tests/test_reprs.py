"""No repr of the package shows a token, a key or a licence."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import pkgutil
import traceback

import pytest

import usher
from usher._loads import Resource

PUBLIC = {
    "Command": {"name", "summary", "extra"},
    "Explanation": {"summary", "advice", "source"},
    "FileProtection": {"content_id", "init_data", "scheme"},
    "Protection": {"system_id", "content_id", "init_data", "iv", "scheme"},
    "LicenseResponse": {"message"},
    "Notice": {"summary", "advice"},
    "HostFunction": {"name"},
}
"""For each class, the fields of text or bytes that are not secret."""


STATES = {"Context", "Delegate", "Observer", "Part", "Playback", "Player", "ResourceLoader"}
"""Classes whose repr says in which state the object is."""
NUMBERS = {"Options"}
"""Classes whose repr shows only numbers; test_border.py tests it."""


def _shown_fields(kind: type[object]) -> list[tuple[str, str]]:
    """Returns the names and types of the fields that repr() of a data class or of a named tuple shows."""
    if dataclasses.is_dataclass(kind):
        return [(field.name, str(field.type)) for field in dataclasses.fields(kind) if field.repr]
    return [(name, str(kind.__annotations__.get(name))) for name in getattr(kind, "_fields", ())]


def test_dataclasses_showOnlyFieldsThatAreKnownToBePublic() -> None:
    """If a data class or named tuple has a field of text or bytes, repr() does not show this field, unless PUBLIC
    lists it."""
    checked = 0
    for module in pkgutil.walk_packages(usher.__path__, "usher."):
        if module.name.startswith(("usher.testing", "usher.aio.testing")):
            continue
        for name, kind in vars(importlib.import_module(module.name)).items():
            if not (isinstance(kind, type) and kind.__module__.startswith("usher")):
                continue
            for field, shown in _shown_fields(kind):
                checked += 1
                if "str" in shown or "bytes" in shown:
                    assert field in PUBLIC.get(name, ()) or field == "key_ids", f"{name}.{field}"
    assert checked > 30


def test_classes_withAReprOfTheirOwn_areKnown() -> None:
    """Classes other than enums, tuples, data classes and those of STATES and NUMBERS define no __repr__, so Python
    shows none of their attributes."""
    for module in pkgutil.walk_packages(usher.__path__, "usher."):
        if module.name.startswith("usher.testing"):
            continue
        for name, kind in vars(importlib.import_module(module.name)).items():
            if not (isinstance(kind, type) and kind.__module__.startswith("usher")):
                continue
            has_none = issubclass(kind, enum.Enum) or dataclasses.is_dataclass(kind) or "__repr__" not in vars(kind)
            assert has_none or kind is Resource or issubclass(kind, tuple) or kind.__name__ in STATES | NUMBERS, name


def test_reprs_ofObjects_showTheirStateAndNoSecret() -> None:
    """The repr of an object says in which state the object is. It shows no token and no header. It shows the host's tag
    only if the tag is a text or a number."""
    with usher.Context(clock="manual", callbacks="pumped") as context:
        headers = {"X-Key": "S3cr3t"}
        delegate = usher.SSPDelegate(context, license_url="https://h.example/?k=S3cr3t", extra_headers=headers)
        player, observer = usher.Player(context), context.add_observer(lambda event: None)
        idle = repr(player)
        playback = player.play("S3cr3t", clear=True, tag="kitchen")
        other = usher.Player(context).play("S3cr3t", clear=True, tag={"S3cr3t": 1})
        context.settle(callbacks=10)  # until then, the second playback is pending
        shown = [context, player, playback, other, delegate, observer]
        before = [idle, *map(repr, shown)]
        for thing in (playback, other):
            thing.free()
        observer.remove()
        delegate.close()
        player.close()
    assert before == [
        "<usher.Player, idle>",
        "<usher.Context, manual clock, pumped, 2 playbacks>",
        "<usher.Player, plays <usher.Playback, tag 'kitchen', session NONE>>",
        "<usher.Playback, tag 'kitchen', session NONE>",
        "<usher.Playback, session NONE>",
        "<usher.SSPDelegate, open>",
        "<usher.Observer, active>",
    ]
    assert list(map(repr, shown)) == [
        "<usher.Context, manual clock, pumped, closed>",
        "<usher.Player, closed>",
        "<usher.Playback, closed>",
        "<usher.Playback, closed>",
        "<usher.SSPDelegate, closed>",
        "<usher.Observer, removed>",
    ]


def test_resource_ofALoader_showsNoBytes() -> None:
    """asyncio and debuggers show the result of a task. The result of get_resource() shows only its size."""
    resource = Resource(b"the CKC")
    assert resource == b"the CKC"
    assert [repr(resource), str(resource), f"{resource}"] == ["<7 bytes>"] * 3


@pytest.mark.parametrize("text", ["S3cr3t\ud800", "S3cr3t\0"])
def test_textThatCannotBePassed_errorDoesNotContainIt(text: str) -> None:
    """The host passes a token that contains a surrogate or a NUL. Neither the error nor its causes contain this
    token."""
    with usher.Context() as context, pytest.raises(usher.InvalidArgumentError) as refused:
        usher.Player(context).play(text)
    error = refused.value
    causes = [error.__cause__, error.__context__]
    assert "S3cr3t" not in repr([error, error.args, *causes, *traceback.format_exception(error, limit=0)])


@pytest.mark.parametrize(
    "uri",
    [
        "https://h.example/hms/fp/rights/?ExpressPlayToken=AQAAABcAAAhQ-S3cr3t",
        "data:text/plain;base64,S3cr3tKeyOf16Byte",
    ],
)
def test_protection_withATokenOrKeyInItsUri_doesNotShowIt(uri: str) -> None:
    """A key URI in a playlist may contain a token or key; the repr of the protection does not show the URI."""
    line = f'#EXT-X-KEY:METHOD=SAMPLE-AES,KEYFORMAT="com.apple.streamingkeydelivery",URI="{uri}"'
    (found,) = usher.read_hls_keys(line)
    assert found.uri == uri
    assert "S3cr3t" not in repr(found) and "S3cr3t" not in str(found)
