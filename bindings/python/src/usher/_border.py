"""Checks the arguments of the host before C gets them. An error names the argument, says what is wrong with its value,
and says how to correct the value.

A wrong type is a TypeError, a wrong value an InvalidArgumentError. No message contains a text that may be a token, a
header or a pass phrase: a message shows only the type of a text, and only the host of a URL.
"""

from __future__ import annotations

import contextlib
import difflib
import operator
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ._c.abi import OFF
from ._c.enums import Status
from ._errors import InvalidArgumentError, InvalidHandleError
from ._options import LARGEST

Kind = TypeVar("Kind")
Member = TypeVar("Member", bound=IntEnum)

_UNITS = {"_ms": "milliseconds", "_s": "seconds", "_bytes": "bytes", "_permille": "thousandths"}
_SPELLED = {"licence": "license", "uri": "url", "sec": "ms", "seconds": "ms", "timeout": "timeout_ms"}
"""Maps words that a host may write in the name of an option to the words that options use."""
PATHS = ("_file", "_path")
"""The ends of the names of options that are paths."""


def refused(text: str) -> InvalidArgumentError:
    """Makes the error for a wrong value."""
    return InvalidArgumentError(text, status=Status.INVALID_ARGUMENT)


def article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeio' else 'a'} {word}"


def kind_of(value: object) -> str:
    """Returns the type of a value in words: "a str", "an int", "None" and so on. The text shows no part of the value,
    which may be a secret."""
    return "None" if value is None else article(type(value).__name__)


def shown(value: object) -> str:
    """Returns a text about a value, such as "'5' is a str". The text shows at most 20 characters of a number, and
    a str of at most 12 digits and dots. Of any other value it shows only the type, because the value may be a secret:
    "this is a str"."""
    is_number = isinstance(value, str) and len(value) <= 12 and value.replace(".", "").isdigit()
    if is_number or isinstance(value, bool | int | float):
        return f"{value!r:.20} is {kind_of(value)}"
    return f"this is {kind_of(value)}"


def unit_of(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def number(value: object, bits: int, name: str) -> int:
    """Returns the value as an int that fits an unsigned C type of `bits` bits. Raises an exception if the value is not
    a whole number or does not fit; ctypes would silently drop its upper bits."""
    unit = unit_of(name)
    whole = f"whole {unit}" if unit else "a whole number"
    if isinstance(value, bool):
        raise TypeError(f"{name}: {value} is a bool; give {whole} as an int")
    try:
        found = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: {shown(value)}; give {whole} as an int{_example(name, value)}") from None
    if found < 0:
        raise refused(f"{name}: {found} is negative")
    limit = LARGEST.get(name, (1 << bits) - 1)
    if found > limit and (found != OFF or name not in LARGEST):
        raise refused(f"{name}: {found} is too large; the largest value is {limit}")
    return found


def _example(name: str, value: object) -> str:
    """Returns an example with the number that the host probably meant, such as ", e.g. timeout_ms=5000"; "" if the
    value is not a number."""
    try:
        return f", e.g. {name}={round(float(value))}"  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return ""


def flag(value: object, name: str) -> int:
    """Returns 0 or 1 for a bool, or for the number 0 or 1. Raises an exception for any other value."""
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return int(value)
    if isinstance(value, int):
        raise refused(f"{name}: {value} is not 0 or 1; give True or False")
    raise TypeError(f"{name}: {shown(value)}; give True or False")


def member(value: object, kind: type[Member], name: str, words: bool = False) -> Member:
    """Returns the member of an enumeration that `value` means: `value` is the member, its number or (only if `words` is
    True) its name in lower case. Raises an exception for any other value."""
    names = ", ".join(repr(found.name.lower()) if words else f"{kind.__name__}.{found.name}" for found in kind)
    if words and isinstance(value, str):
        found = next((found for found in kind if found.name.lower() == value), None)
        if found is not None:
            return found
        raise refused(f"{name}: {value!r:.40} is none of {names}{meant(value, [m.name.lower() for m in kind])}")
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: {shown(value)}; give one of {names}")
    if value not in list(kind):
        raise refused(f"{name}: {int(value)} is none of {names}")
    return kind(value)


def text(value: object, name: str) -> str:
    """Returns the value if it is a str. If the name is that of a path (PATHS), also converts an os.PathLike to a str.
    Raises TypeError for any other value."""
    if isinstance(value, str):
        return value
    if name.endswith(PATHS) and isinstance(value, os.PathLike):
        return text(os.fspath(value), name)
    what = "a str or a path" if name.endswith(PATHS) else "a str"
    mend = "; decode it first" if isinstance(value, bytes) else ""
    raise TypeError(f"{name}: this is {kind_of(value)}, not {what}{mend}")


def data(value: object, name: str) -> bytes:
    """Returns bytes, a bytearray or a memoryview as bytes. Raises TypeError for any other value."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    mend = "; encode it first" if isinstance(value, str) else ""
    raise TypeError(f"{name}: this is {kind_of(value)}, not bytes{mend}")


def instance(value: object, kind: type[Kind], name: str) -> Kind:
    """Returns the value if it is an object of this class; otherwise raises TypeError."""
    if isinstance(value, kind):
        return value
    hint = ""
    if type(value).__name__ == kind.__name__:  # usher.aio.Context for usher.Context, or the other way round
        hint = f" of {kind.__module__.partition('._')[0]}: do not mix the classes of usher and usher.aio"
    raise TypeError(f"{name}: this is {kind_of(value)}, not {article(kind.__name__)}{hint}")


def function(value: Any, name: str) -> Any:
    """Returns the value if Python can call it; otherwise raises TypeError."""
    if callable(value):
        return value
    raise TypeError(f"{name}: {shown(value)}; give a function")


_SIMPLE: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "bytes": (bytes,),
    "float": (float, int),
    "int": (int,),
    "str": (str,),
    "None": (type(None),),
}


def simple(value: object, annotation: str, name: str) -> None:
    """Raises TypeError if the value has none of the types in an annotation such as "int | None". If the annotation
    contains a type that `_SIMPLE` does not have, accepts every value."""
    kinds = annotation.split(" | ")
    if not all(kind in _SIMPLE for kind in kinds):
        return
    is_bool = isinstance(value, bool) and "bool" not in kinds  # Python's bool is a subclass of int
    if is_bool or not isinstance(value, tuple(each for kind in kinds for each in _SIMPLE[kind])):
        said = f"{value} is a bool" if is_bool else shown(value)
        raise TypeError(
            f"{name}: {said}; give {' or '.join(kind if kind == 'None' else article(kind) for kind in kinds)}"
        )


def several(value: object, name: str) -> list[object]:
    """Returns the elements of a list or another iterable as a list. Raises TypeError for any other value, and for a str
    or bytes."""
    if isinstance(value, bytes | str):
        raise TypeError(f"{name}: this is {kind_of(value)}; give a list")
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{name}: {shown(value)}; give a list")


def headers(value: object, name: str) -> str:
    """Converts a mapping of header names to values into header lines; returns a text unchanged. Raises an exception for
    a wrong type or a malformed header in a mapping."""
    if not isinstance(value, Mapping):
        return text(value, name)
    for header, content in value.items():
        text(header, f"{name}: a name")
        text(content, f"{name}: the value of {header}")
        if ":" in header or "\n" in header + content:
            raise refused(f"{name}: a header contains a line break, or its name contains a colon")
    return "\n".join(f"{header}: {content}" for header, content in value.items())


def hosts(value: object, name: str) -> str:
    """Returns the hosts of a list as one text, with blanks between them. Raises an exception if a host is not a text,
    is empty or has a blank."""
    patterns = [text(host, f"{name}: a host") for host in several(value, name)]
    if any(not pattern or any(map(str.isspace, pattern)) for pattern in patterns):
        raise refused(f"{name}: a host is empty or has a blank in it")
    return " ".join(patterns)


def meant(word: str, known: Iterable[str]) -> str:
    """If `word` is similar to one of the `known` words, returns a hint such as ": did you mean 'license_url'?";
    otherwise ""."""
    names = list(known)
    spelled = word
    for wrong, right in _SPELLED.items():
        spelled = spelled.replace(wrong, right) if right not in spelled else spelled
    close = difflib.get_close_matches(spelled, names, 1, 0.7) or difflib.get_close_matches(word, names, 1, 0.7)
    return f": did you mean {close[0]!r}?" if close else ""


def known(given: Mapping[str, object], names: Iterable[str], what: str) -> None:
    """Raises TypeError if an option in `given` is not among `names`, the options of the class or function `what`."""
    names = list(names)
    for name in given:
        if name not in names:
            raise TypeError(f"{what}() has no option {name!r}{meant(name, names)}")


_MENDS = {
    "plain http to another machine needs allow_insecure_http": "plain http{host} needs "
    "Context(allow_insecure_http=True); without TLS everybody on the way can read the tokens",
    "not an absolute http or https URL": "not an absolute http or https URL, such as https://host/path",
    "missing": "missing, and required",
    "unknown value": "unknown value; give a KeySystem, such as KeySystem.WIDEVINE",
    "has no manual clock": 'has no manual clock; make it with Context(clock="manual")',
    "neither the playback nor the context has a licence delegate": "neither the playback nor the context has a licence "
    "delegate; pass delegate=, or call Context.set_delegate()",
    "is not pumped": 'is not pumped; make it with Context(callbacks="pumped")',
    "empty, blank, or has a character that no header can carry": "empty, blank, or has a character that no header can "
    "carry{newline}",
}
"""Maps texts with which the library refuses a call to texts that also say how to correct the call."""


def mended(reason: str, value: object = None) -> str:
    """Returns the text with which the library refused a call. If `_MENDS` has this text, the result also says how to
    correct the call. `value`: the argument that the library refused."""
    host, newline = "", ""
    if isinstance(value, str):
        if "://" in value:
            with contextlib.suppress(ValueError):
                host = f" to {urlsplit(value).hostname}"
        if value.endswith(("\n", "\r")):
            newline = ": it ends with a line break, as a text from a file may; use .strip()"
    return _MENDS[reason].format(host=host, newline=newline) if reason in _MENDS else reason


def passed(call: Callable[[], Kind], given: Mapping[str, object]) -> Kind:
    """Runs `call`, which passes the arguments `given` to a library function. Returns the result of `call`. If the
    library refuses an argument, the error has the argument's name, its value (only if it is a number, the name of a
    file or a key system), the reason and, if known, the correction."""
    try:
        return call()
    except InvalidArgumentError as error:
        name, separator, reason = error.message.partition(": ")
        if not separator or name not in given:
            raise
        value, words = given[name], mended(reason, given[name])
        if isinstance(value, int) and not isinstance(value, bool):
            words = f"{int(value)}: {words}"
        elif name.endswith(PATHS) and isinstance(value, str | os.PathLike):
            words = f"{os.fspath(value)!r}: {words}{_file_fault(value)}"
        elif name == "key_system":
            words = f"{value!r:.60}: {words}"
        error.message = f"{name}: {words}"
        error.args = (error.message,)
        raise


def _file_fault(path: str | os.PathLike[str]) -> str:
    """Returns why this process cannot read a file, such as " (no such file or directory)"; "" if it can read the file,
    or if the path is malformed."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f" ({(error.strerror or str(error)).lower()})"
    except ValueError:
        return ""
    if not stat.S_ISREG(mode):
        return " (it is a directory)" if stat.S_ISDIR(mode) else " (it is not a regular file)"
    return "" if os.access(path, os.R_OK) else " (permission denied)"


_CLASSES = {"context": "Context", "player": "Player", "playback": "Playback"}


def caller(function: str) -> str:
    """Returns the Python name of a function of the C library, such as "Context.pump()"."""
    subject, _, action = function.removeprefix("usher_").partition("_")
    if subject in _CLASSES and action and action != "new":
        return f"{_CLASSES[subject]}.{action}()"
    return f"{action}()" if subject == "delegate" else function


def closed(function: str) -> str:
    """Returns the message of the error for a call with a closed object. `function`: the name of the library
    function."""
    subject, _, action = function.removeprefix("usher_").partition("_")
    if subject in _CLASSES and action != "new":
        what = _CLASSES[subject]
    elif subject == "delegate" and action != "new":
        what = "the delegate"
    else:
        what = "Context"  # the context for which a function makes an object
    more = "" if what in ("Context", "the delegate") else f", or its {'Context' if what == 'Player' else 'Player'} is"
    return f"{what} is closed{more}"


def shown_object(thing: object, *facts: str) -> str:
    """Returns the repr of an object of the package: <usher.Player, playing>."""
    kind = type(thing)
    module = "usher.aio" if kind.__module__.startswith("usher.aio") else kind.__module__.partition(".")[0]
    return f"<{', '.join([f'{module}.{kind.__qualname__}', *filter(None, facts)])}>"


def shown_tag(tag: object) -> str:
    """Returns a host's tag for a repr, such as "tag 7"; "" for a tag of any other type, which may contain a
    secret."""
    return f"tag {tag!r}" if isinstance(tag, str | int) else ""


def open_part(part: Any, context: object, name: str) -> None:
    """Raises an exception if `part`, an object of a context, is closed or belongs to another context than `context`."""
    kind = type(part).__name__
    if part._is_closed:
        raise InvalidHandleError(f"{name}: this {kind} is closed", status=Status.INVALID_HANDLE)
    if part.context is not context:
        raise refused(f"{name}: this {kind} belongs to another context; make one with this context")
