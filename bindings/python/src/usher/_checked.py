"""The base class of the option classes while a program runs. For type checkers these classes are TypedDicts, which
check nothing at run time; here they are dicts that check their options when they are made."""

from __future__ import annotations

import inspect
from typing import Any


class Options(dict[str, Any]):
    """Options by name: ``SSPOptions(license_url=URL, setup_timeout_ms=5000)``.

    Raises:
        TypeError: an option has a wrong type, or there is no option with this name.
        InvalidArgumentError: an option has a wrong value.
    """

    def __init_subclass__(cls, *, total: bool = True) -> None:
        """Adds the options of the base classes to those of the class, as a TypedDict does."""
        super().__init_subclass__()
        options: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            options |= inspect.get_annotations(base)
        cls.__annotations__ = options

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        from . import _border
        from ._c import abi, fields
        from ._options import STRUCTURES

        kind = type(self)
        _border.known(self, kind.__annotations__, kind.__name__)
        names = [name for base in kind.__mro__ for name in STRUCTURES.get(base.__name__, ())]
        fields.check([abi.STRUCTURES[name] for name in names], self)

    def __repr__(self) -> str:
        """Returns a text with the options. It shows None and integers; of any other value it shows only the type,
        because such a value may contain a secret."""
        words = [
            f"{name}={value!r}" if value is None or isinstance(value, int) else f"{name}=<{type(value).__name__}>"
            for name, value in self.items()
        ]
        return f"{type(self).__name__}({', '.join(words)})"
