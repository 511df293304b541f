"""Reads settings in the form ``NAME=VALUE``, for the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from .config import HeadEndConfig

_Settings = TypeVar("_Settings")
_SECRET = ("control_token", "authorization")
_UNSETTABLE = ("codes", "keys", "hmac_key", "clock", "host", "port", "tls")


def apply(config: HeadEndConfig, assignments: Iterable[str]) -> HeadEndConfig:
    """Returns a copy of the settings with some of them changed.

    Args:
        config: the settings to copy.
        assignments: texts of the form ``NAME=VALUE``; the name may be a path such as ``v2.token_field``. The value is
            read as JSON; if it is not JSON, it is used as text.

    Raises:
        ValueError: an unknown name, or a value of the wrong type for this name.
    """
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise ValueError(f"{assignment!r} is not NAME=VALUE")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        config = _changed(config, name.split("."), value, name)
    return config


def _changed(settings: _Settings, path: list[str], value: Any, name: str) -> _Settings:
    assert is_dataclass(settings) and not isinstance(settings, type)
    known = [field.name for field in fields(settings) if field.name not in _UNSETTABLE]
    if path[0] not in known:
        raise ValueError(f"{name}: unknown setting; known are {', '.join(known)}")
    now = getattr(settings, path[0])
    if len(path) > 1:
        if not is_dataclass(now):
            raise ValueError(f"{name}: {path[0]} has no settings of its own")
        value = _changed(now, path[1:], value, name)
    else:
        value = _fitting(now, get_type_hints(type(settings))[path[0]], value, name)
    return replace(settings, **{path[0]: value})


def _fitting(now: Any, hint: Any, value: Any, name: str) -> Any:
    if is_dataclass(now):
        raise ValueError(f"{name}: {value!r} does not fit; it has settings of its own")
    if isinstance(now, frozenset | tuple):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{name}: {value!r} is not a JSON array of strings")
        return type(now)(value)
    kinds = {
        str if get_origin(kind) is Literal else kind
        for kind in (get_args(hint) if get_origin(hint) is UnionType else [hint])
    }
    if float in kinds and type(value) is int:
        value = float(value)
    if type(value) not in kinds:
        shown = "the value" if name.endswith(_SECRET) else repr(value)
        raise ValueError(f"{name}: {shown} does not fit; wanted: {', '.join(sorted(kind.__name__ for kind in kinds))}")
    return value
