"""Faults. A fault is an error that a head-end, a proxy or a network makes with one request.

A fault says whether the head-end holds back or delays the request, whether it executes the request, how it changes the
reply, and how it sends the reply. ``a | b`` combines two faults: if both set the same attribute, the value of ``b``
counts; the head-end makes the changes of both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..knobs import ExpressPlayErrors
from ..state import rights
from .effects import Delivery, Edit, FaultError, When
from .field_faults import TOXICS, WIREMOCK_FAULTS, FieldFaults, plain_form
from .replies import JSON_TYPE, Reply


@dataclass(frozen=True)
class Fault(FieldFaults):
    """A fault for one request. The class methods make faults; the base class ``Effects`` describes the attributes of a
    fault."""

    # Time.

    @classmethod
    def none(cls) -> Fault:
        """Does nothing: the request gets its normal reply. In a queue of faults, one request then gets no fault."""
        return cls("none")

    @classmethod
    def stall(cls, when: When = "before") -> Fault:
        """Holds the request back until a test releases it or the client disconnects.

        With ``before`` the head-end does not execute the request if the client disconnects. With ``after`` it has
        already executed the request, and holds back only the reply.
        """
        return cls(f"stall {when}", hold=when)

    @classmethod
    def delay(cls, ms: int, when: When = "before") -> Fault:
        """Delays the request (``before``) or only its reply (``after``) by ``ms`` on the head-end's clock."""
        return cls(f"delay {ms} ms {when}", delay_ms=(ms, 0) if when == "before" else (0, ms))

    @classmethod
    def trickle(cls, piece_bytes: int = 1, every_ms: int = 1000) -> Fault:
        """Sends the body in pieces: the first at once, then one every ``every_ms``."""
        label = f"trickle {piece_bytes} B/{every_ms} ms"
        return cls(label, delivery=Delivery.TRICKLE, piece_bytes=max(1, piece_bytes), every_ms=every_ms)

    # Connection.

    @classmethod
    def drop(cls, when: When = "before") -> Fault:
        """Closes the connection without a reply, either before or after the head-end executes the request."""
        return cls(f"drop {when}", effect=when == "after", delivery=Delivery.CLOSE)

    @classmethod
    def reset(cls, when: When = "before") -> Fault:
        """Resets the connection (RST) without a reply."""
        return cls(f"reset {when}", effect=when == "after", delivery=Delivery.RESET)

    @classmethod
    def reset_in_headers(cls) -> Fault:
        """Sends half of the reply's headers, and then resets the connection. The head-end executes the request."""
        return cls("reset in headers", delivery=Delivery.RESET_IN_HEAD)

    @classmethod
    def reset_in_body(cls, keep_bytes: int | None = None) -> Fault:
        """Sends the headers and a part of the body (default: half), and then resets the connection. The head-end
        executes the request."""
        return cls("reset in body", delivery=Delivery.RESET_IN_BODY, keep_bytes=keep_bytes)

    @classmethod
    def truncate(cls, keep_bytes: int | None = None) -> Fault:
        """Sends only a part of the body (default: half), although ``Content-Length`` is the size of the whole body."""
        return cls("truncated body", delivery=Delivery.TRUNCATED, keep_bytes=keep_bytes)

    @classmethod
    def short_length(cls, keep_bytes: int | None = None) -> Fault:
        """Sends the whole body, although ``Content-Length`` is less than its size (default: half)."""
        return cls("Content-Length too short", delivery=Delivery.SHORT_LENGTH, keep_bytes=keep_bytes)

    @classmethod
    def bad_chunks(cls) -> Fault:
        """Sends chunked encoding with an unreadable chunk size."""
        return cls("bad chunking", delivery=Delivery.BAD_CHUNKS)

    @classmethod
    def truncated_chunks(cls, keep_bytes: int | None = None) -> Fault:
        """Sends a part of the body (default: half) as one chunk, and then closes the connection without the last
        chunk."""
        return cls("truncated chunking", delivery=Delivery.TRUNCATED_CHUNKS, keep_bytes=keep_bytes)

    @classmethod
    def endless(cls, size_bytes: int = 100_000_000) -> Fault:
        """Sends ``size_bytes`` blanks as the body. The head-end executes the request."""
        return cls(f"endless {size_bytes} B", delivery=Delivery.ENDLESS, size_bytes=size_bytes)

    # Other replies.

    @classmethod
    def reply(
        cls,
        status: int,
        *,
        body: bytes | str | Mapping[str, Any] = b"",
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        processed: bool = False,
        label: str | None = None,
    ) -> Fault:
        """Sends this reply instead of the real one. ``processed``: whether the head-end still executes the request.

        Args:
            body: bytes, text, or a mapping sent as JSON.
            content_type: the ``Content-Type``; None: chosen by the type of ``body``.
        """
        if isinstance(body, Mapping):
            data, kind = json.dumps(body).encode(), JSON_TYPE
        elif isinstance(body, str):
            data, kind = body.encode(), "text/plain; charset=utf-8"
        else:
            data, kind = body, "application/octet-stream" if body else ""
        made = Reply(status, data, kind if content_type is None else content_type, tuple((headers or {}).items()))
        return cls(label or f"reply {status}", effect=processed, edits=(lambda _: made,))

    @classmethod
    def status(
        cls,
        status: int,
        *,
        retry_after: int | str | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | str | Mapping[str, Any] = b"",
        processed: bool = False,
    ) -> Fault:
        """Replies with a status such as 503 or 401. By default the head-end does not execute the request.

        Args:
            retry_after: the value of the header ``Retry-After``: seconds or a date.
        """
        extra = dict(headers or {})
        if retry_after is not None:
            extra["Retry-After"] = str(retry_after)
        return cls.reply(status, body=body, headers=extra, processed=processed, label=f"status {status}")

    @classmethod
    def error(cls, code: int, *, status: int = 400, message: str = "by fault script", processed: bool = False) -> Fault:
        """Replies with an error body of the platform: ``{"errorCode": code, "message": message}``."""
        body = {"errorCode": code, "message": message}
        return cls.reply(status, body=body, processed=processed, label=f"error {code}")

    @classmethod
    def rights_error(
        cls, number: int, text: str = "by fault script", *, style: ExpressPlayErrors = "html", status: int = 400
    ) -> Fault:
        """Replies with an error in ExpressPlay's form. The head-end does not execute the request."""
        made = rights.error_reply(number, text, style, status=status)
        return cls(f"rights error {number}", effect=False, edits=(lambda _: made,))

    @classmethod
    def redirect(cls, location: str, status: int = 302) -> Fault:
        """Replies with a redirect. The head-end does not execute the request."""
        return cls.reply(status, headers={"Location": location}, label=f"redirect {status}")

    @classmethod
    def html_page(cls, status: int = 200, *, processed: bool = False) -> Fault:
        """Sends a web page instead of the reply, like a captive portal or a proxy."""
        page = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"
        kind = "text/html; charset=utf-8"
        return cls.reply(status, body=page, content_type=kind, processed=processed, label="html page")

    @classmethod
    def non_json(cls, text: str = "session ok", *, processed: bool = True) -> Fault:
        """Sends text that is not JSON, with the content type of JSON. The head-end executes the request."""
        return cls("non-JSON body", effect=processed, edits=(lambda r: replace(r, body=text.encode()),))

    @classmethod
    def empty_body(cls, *, processed: bool = True) -> Fault:
        """Sends the real status and headers, but no body. The head-end executes the request."""
        return cls("empty body", effect=processed, edits=(lambda r: replace(r, body=b""),))

    @classmethod
    def header(cls, name: str, value: str) -> Fault:
        """Adds a header to the real reply."""
        return cls(f"header {name}", edits=(lambda r: r.with_header(name, value),))

    # Fields of JSON replies.

    @classmethod
    def without(cls, *fields: str) -> Fault:
        """Removes fields from the JSON reply."""

        def edit(value: dict[str, Any]) -> dict[str, Any]:
            return {key: item for key, item in value.items() if key not in fields}

        return cls(f"without {', '.join(fields)}", edits=(_json_edit(edit),))

    @classmethod
    def fields(cls, overrides: Mapping[str, Any] | None = None, **named: Any) -> Fault:
        """Sets fields of the JSON reply to any value, such as ``fields(heartbeat="60")``."""
        values = {**(overrides or {}), **named}
        label = "fields " + ", ".join(f"{key}={item!r}" for key, item in values.items())
        return cls(label[:60], edits=(_json_edit(lambda value: {**value, **values}),))

    @classmethod
    def rename(cls, old: str, new: str) -> Fault:
        """Renames a field of the JSON reply, for example ``rename("sessionToken", "sessiontoken")``."""

        def edit(value: dict[str, Any]) -> dict[str, Any]:
            return {new if key == old else key: item for key, item in value.items()}

        return cls(f"rename {old} to {new}", edits=(_json_edit(edit),))

    @classmethod
    def oversized(cls, size_bytes: int) -> Fault:
        """Pads the reply to at least this many bytes; a JSON reply stays valid JSON."""

        def edit(reply: Reply) -> Reply:
            value = reply.json_object()
            missing = size_bytes - len(reply.body)
            if missing <= 0:
                return reply
            if value is None:
                return replace(reply, body=reply.body + b" " * missing)
            return replace(reply, body=json.dumps({**value, "padding": "x" * missing}).encode())

        return cls(f"oversized {size_bytes} B", edits=(edit,))

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str) -> Fault:
        """Makes a fault from the JSON of the control endpoint: ``{"kind": name, …arguments}``, a name alone, or an
        object of toxiproxy (``plain_form``).

        ``kind`` is the name of a class method of ``Fault``, and the other members are the arguments of this method. The
        kind ``without`` takes ``fields``, a list; the kind ``fields`` takes ``overrides``, an object.

        Raises:
            ValueError: an unknown kind, or arguments that the kind does not take.
        """
        arguments = plain_form(value)
        kind = str(arguments.pop("kind", ""))
        positional: Sequence[str] = ()
        if kind not in KINDS:
            raise ValueError(f"unknown fault kind {kind!r}; kinds are {', '.join(KINDS)}")
        if kind == "without":
            positional = [str(name) for name in arguments.pop("fields", [])]
        if arguments.get("when", "before") not in ("before", "after"):
            raise ValueError(f"fault {kind}: when is {arguments['when']!r}, neither before nor after")
        try:
            made = getattr(cls, kind.lower())(*positional, **arguments)
        except (TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"fault {kind}: {error}") from error
        assert isinstance(made, Fault)
        return made


KINDS = (
    "none",
    "stall",
    "delay",
    "trickle",
    "drop",
    "reset",
    "reset_in_headers",
    "reset_in_body",
    "truncate",
    "short_length",
    "bad_chunks",
    "truncated_chunks",
    "endless",
    "reply",
    "status",
    "error",
    "rights_error",
    "redirect",
    "html_page",
    "non_json",
    "empty_body",
    "header",
    "without",
    "fields",
    "rename",
    "oversized",
    *TOXICS,
    *WIREMOCK_FAULTS,
)
"""The kinds of faults that the control endpoint can add."""


def _json_edit(edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Edit:
    def apply(reply: Reply) -> Reply:
        value = reply.json_object()
        if value is None:
            raise FaultError(f"the fault edits JSON, the reply is {reply.content_type or 'empty'}")
        return replace(reply, body=json.dumps(edit(value)).encode())

    return apply
