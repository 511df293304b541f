"""The form in which a FairPlay key server takes an SPC (protocol.md: A FairPlay key server)."""

from __future__ import annotations

import argparse
import base64
import json
from dataclasses import dataclass, field
from urllib.parse import quote

from .exits import CommandError

ENCODINGS = ("raw", "form", "base64", "json")
URL_CODINGS = ("value", "none", "whole")
_TYPES = {
    "raw": "application/octet-stream",
    "form": "application/x-www-form-urlencoded",
    "base64": "text/plain",
    "json": "application/json",
}


@dataclass(frozen=True)
class SpcForm:
    """How the SPC is written into the body of a request.

    Attributes:
        encoding: the bytes of the SPC (``raw``), a form, base64 text, or JSON.
        url_coding: which part of a form is percent-coded: its values (``value``), no part (``none``) or the whole form
            (``whole``).
        name: the field of the SPC in a form or in JSON.
        content_field: a further field, which has the content identifier; None: no such field.
    """

    encoding: str = field(default="raw", repr=False)
    url_coding: str = field(default="value", repr=False)
    name: str = field(default="spc", repr=False)
    content_field: str | None = field(default=None, repr=False)

    @property
    def content_type(self) -> str:
        return _TYPES[self.encoding]

    @property
    def options(self) -> str:
        """The options that choose this form."""
        coding = f" --spc-urlencode {self.url_coding}" if self.encoding == "form" else ""
        return f"--request-format {self.encoding}{coding}"

    def body(self, spc: bytes, content_id: str | None) -> bytes:
        """Returns the body of a request, as the library makes it."""
        text = base64.b64encode(spc).decode()
        content = {self.content_field: content_id or ""} if self.content_field is not None else {}
        if self.encoding == "raw":
            return spc
        if self.encoding == "base64":
            return text.encode()
        if self.encoding == "json":
            return json.dumps({self.name: text, **content}).encode()
        if self.url_coding == "whole":
            pairs = "&".join([f"{self.name}={text}", *(f"{name}={value}" for name, value in content.items())])
            return quote(pairs, safe="").encode()
        value = quote(text, safe="") if self.url_coding == "value" else text
        others = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in content.items()]
        return "&".join([f"{self.name}={value}", *others]).encode()

    def check(self, has_key_server: bool, content_id: str | None) -> None:
        """Raises CommandError if this form and the other options do not fit together."""
        if self != SpcForm() and not has_key_server:
            raise CommandError("--request-format and its options need --key-server")
        if self.url_coding != "value" and self.encoding != "form":
            raise CommandError("--spc-urlencode needs --request-format form")
        if self.content_field is not None and self.encoding not in ("form", "json"):
            raise CommandError("--content-id-field needs --request-format form or json")
        if self.content_field is not None and content_id is None:
            raise CommandError("--content-id-field needs --content-id")


def others(given: SpcForm) -> list[SpcForm]:
    """Returns the other forms in which the library can send an SPC, with the same names of fields."""
    forms = [("raw", "value"), *(("form", coding) for coding in URL_CODINGS), ("base64", "value"), ("json", "value")]
    found = [SpcForm(encoding, coding, given.name, given.content_field) for encoding, coding in forms]
    return [form for form in found if form != given]


def add_arguments(group: argparse._ArgumentGroup) -> None:
    """Adds the options that describe the form. Their names are those of ``usher.LoaderOptions``."""
    group.add_argument(
        "--request-format",
        choices=ENCODINGS,
        default="raw",
        help="how the key server accepts the SPC: as bytes, in an HTML form, as base64 text, or in JSON (%(default)s)",
    )
    group.add_argument(
        "--spc-urlencode",
        choices=URL_CODINGS,
        default="value",
        help="which parts of an HTML form are percent-coded: its values, nothing, or the whole form (%(default)s)",
    )
    group.add_argument(
        "--spc-field", metavar="NAME", default="spc", help="the field of the SPC in a form or in JSON (%(default)s)"
    )
    group.add_argument(
        "--content-id-field",
        metavar="NAME",
        help="the name of a further field, which has the value of --content-id, such as assetId",
    )


def form(options: argparse.Namespace) -> SpcForm:
    """Returns the form that the options describe."""
    return SpcForm(options.request_format, options.spc_urlencode, options.spc_field, options.content_id_field)
