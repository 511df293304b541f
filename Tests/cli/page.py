"""Makes docs/testers.md: what usher probe and usher check print, for head-ends that work and for each of 20 faults.

    USHER_LIBRARY=build/shipped/libusher.so .venv/bin/python Tests/cli/page.py      writes the page

test_page.py makes each section again and compares it with the page.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "testers.md"
for folder in ("Tests", "bindings/python/src"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))

from cli import key_server, license_server, right_server, wrong_server  # noqa: E402
from cli.key_server import KeyServer  # noqa: E402
from cli.license_server import LicenseServer  # noqa: E402
from cli.right_server import RightServer  # noqa: E402
from cli.running import KEY, KID, settled  # noqa: E402
from cli.wrong_server import WrongServer  # noqa: E402

from usher.cli.main import main  # noqa: E402
from usher.testing import fairplay  # noqa: E402
from usher.testing.headend import Fault, HeadEnd  # noqa: E402

INTRODUCTION = """\
# For testers: what probe and check say

`usher probe` and `usher check` ([the command usher](cli.md)) test any [head-end](glossary.md#head-end). This page shows
what these commands print. The script `Tests/cli/page.py` writes this page; a test makes each output again and compares
the output with the page. Some parts of an output may differ in the next run: ports, times, versions and the number of
requests. The script replaces these parts, and removes the header lines `Date` and `Server`.

To see a fault yourself, start `usher headend`. Then choose the fault on the web page of this head-end, or send the
fault to its control endpoint ([faults](headend.md#faults)).
"""
TWENTY_FAULTS = """\
## Twenty faults of the reference head-end

In each of these sections the reference head-end makes one kind of fault. The first line names the fault, as in Python
code, and the route ([faults](headend.md#faults) lists faults and routes). The first output is that of `usher
probe` with `--quiet` and one heartbeat. The second output is that of `usher check` with `--quiet`, without the table of
the statements.
"""


@dataclass(frozen=True)
class Case:
    """A fault of the reference head-end, always at the same route."""

    title: str
    route: str
    code: str
    """The call of a class method of `Fault` that makes the fault, as text."""
    fault: Fault


RIGHTS = ("rights", "rights-unknown", "rights-error")
CASES = (
    Case("The account is at its limit", "setup", "error(1007)", Fault.error(1007)),
    Case("The token has no session control", "setup", "error(1012)", Fault.error(1012)),
    Case("The token is not accepted", "setup", "status(401)", Fault.status(401)),
    Case("The session manager is down", "setup", "status(503, retry_after=5)", Fault.status(503, retry_after=5)),
    Case("Set-up is redirected", "setup", 'redirect("https://sso.example/")', Fault.redirect("https://sso.example/")),
    Case("A sign-in page instead of the reply", "setup", "html_page()", Fault.html_page()),
    Case("The reply has no session token", "setup", 'without("sessionToken")', Fault.without("sessionToken")),
    Case("The period is a text", "setup", 'fields(heartbeat="60")', Fault.fields(heartbeat="60")),
    Case("The reply to set-up is lost", "setup", 'drop("after")', Fault.drop("after")),
    Case("Set-up is never answered", "setup", 'stall("before")', Fault.stall("before")),
    Case("The reply does not end", "setup", "endless(20_000_000)", Fault.endless(20_000_000)),
    Case("The licence is refused", "license", "error(4006)", Fault.error(4006)),
    Case("The licence is cut", "license", "truncate()", Fault.truncate()),
    Case("The licence has no key", "license", "fields(keys=[])", Fault.fields(keys=[])),
    Case("The session is not known any more", "heartbeat", "error(1006)", Fault.error(1006)),
    Case("Heartbeats fail", "heartbeat", "status(500)", Fault.status(500)),
    Case("The connection is reset", "heartbeat", 'reset("before")', Fault.reset("before")),
    Case("The reply is not JSON", "heartbeat", 'non_json("alive")', Fault.non_json("alive")),
    Case("A page confirms the teardown", "teardown", "html_page(processed=True)", Fault.html_page(processed=True)),
    Case(
        "An error code confirms the teardown",
        "teardown",
        "error(1003, status=200, processed=True)",
        Fault.error(1003, status=200, processed=True),
    ),
)


def printed(*arguments: str) -> str:
    """Returns the output of a command, and its exit code as the last line. Leaves out what differs from run to run."""
    said = io.StringIO()
    before = {name: os.environ.pop(name, None) for name in ("COLUMNS", "FORCE_COLOR")}
    try:
        with contextlib.redirect_stdout(said):
            code = main(list(arguments))
    finally:
        os.environ.update({name: value for name, value in before.items() if value is not None})
    text = settled(said.getvalue()).rstrip("\n")
    text = re.sub(r"< (Date|Server): .*\n", "", re.sub(r"^ *< (?:Date|Server): .*\n", "", text, flags=re.M))
    text = re.sub(r"\(\d+ requests, N s, ", "(N requests, N s, ", text)
    text = re.sub(r"libusher \d+\.\d+\.\d+", "libusher 0.1.0", re.sub(r"usher/\d+\.\d+\.\d+", "usher/0.1.0", text))
    return f"```\n{text}\n(exit code {code})\n```\n"


@contextlib.contextmanager
def token_file(token: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "token.txt")
        path.write_text(f"{token}\n")
        yield str(path)


@contextlib.contextmanager
def reference(case: Case | None = None) -> Iterator[list[str]]:
    """Starts a reference head-end with a fault. Yields the arguments that describe it."""
    with HeadEnd(clock="manual", limit=2, period_s=60) as headend, token_file(headend.content_token("alice")) as token:
        headend.add_key(KID, KEY)
        if case is not None:
            headend.faults.add(case.route, case.fault, always=True)
        urls = [headend.ssm_url, "--license", headend.license_url("clearkey"), "--key-id", KID.hex()]
        yield [*urls, "--token-file", token, "--timeout", "0.6" if case is not None and case.fault.hold else "30"]


def works() -> str:
    with reference() as asked:
        probe = printed("probe", *asked, "--heartbeats", "1")
    with RightServer() as server, token_file(right_server.CONTENT_TOKEN) as token:
        aim = [server.url, "--license", server.license_url, "--key-id", KID.hex(), "--token-file", token]
        check = printed("check", *aim, "--limit", "2", "--seed", "1", "--stories", "0")
    return (
        "## A head-end that works\n\n"
        "`usher probe` against the reference head-end, with one [heartbeat](glossary.md#heartbeat):\n\n"
        f"{probe}\n"
        "`usher check` against `Tests/cli/right_server.py`, a small head-end that exists only for the tests of this\n"
        "command. It shares no code with the reference head-end, and behaves differently wherever the protocol allows\n"
        "different behaviour:\n\n"
        f"{check}"
    )


def ten_faults() -> str:
    with WrongServer() as server, token_file(wrong_server.CONTENT_TOKEN) as token:
        asked = [server.url, "--token-file", token, "--limit", "2", "--seed", "1", "--stories", "0", "--quiet"]
        check = printed("check", *asked)
    return (
        "## A head-end with ten faults\n\n"
        "`Tests/cli/wrong_server.py` is another small head-end that exists only for the tests of this command. Its\n"
        "code breaks ten statements of the protocol on purpose. `usher check --quiet` reports exactly these ten\n"
        "faults. For each fault it prints the shortest [story](glossary.md#story) that it found: the requests that\n"
        "show the fault. Without `--quiet` the command also prints the headers and bodies of these requests and of\n"
        "the replies:\n\n"
        f"{check}"
    )


def key_servers() -> str:
    with reference() as asked, KeyServer({"ckc", "rights-error"}) as server, tempfile.TemporaryDirectory() as folder:
        spc = Path(folder, "spc.bin")
        spc.write_bytes(fairplay.make_spc(key_server.CONTENT_ID, nonce=bytes(16)))
        session = [asked[0], *asked[asked.index("--token-file") :]]
        keys = ["--key-system", "fairplay", "--payload", str(spc), *server.arguments]
        tags = ["ckc", "ckc-refused", "certificate", "entitlement", "entitlement-denied", "entitlement-id", *RIGHTS]
        only = [word for tag in tags for word in ("--only", tag)]
        check = printed("check", *session, *keys, *only, "--limit", "2", "--seed", "1", "--stories", "0")
    return (
        "## FairPlay key servers\n\n"
        "`usher check` also tests a [key server](protocol.md#a-fairplay-key-server), an\n"
        "[entitlement](glossary.md#entitlement) server and ExpressPlay. In this example `Tests/cli/key_server.py`\n"
        "plays these three servers, with two faults: the key server replies with a sign-in page instead of a\n"
        "[CKC](glossary.md#ckc), and ExpressPlay replies with an error number that is not negative:\n\n"
        f"{check}"
    )


def without_sessions() -> str:
    with KeyServer(form="form-plain") as server, tempfile.TemporaryDirectory() as folder:
        spc = Path(folder, "spc.bin")
        spc.write_bytes(fairplay.make_spc(key_server.CONTENT_ID, nonce=b"\0\0\xfb\xef\xbe\xff\xff\xff" * 2))
        asked = ["--key-system", "fairplay", "--payload", str(spc), "--key-server", f"{server.url}/keys"]
        asked += ["--request-format", "form", "--seed", "1", "--quiet"]
        keys = printed("check", *asked, *(word for tag in ("ckc", "ckc-refused") for word in ("--only", tag)))
    with LicenseServer({"license-token"}) as server, token_file(license_server.CONTENT_TOKEN) as token:
        asked = ["--license", server.url, "--key-id", KID.hex(), "--token-file", token, "--seed", "1", "--quiet"]
        tags = ("license-alone", "license-token", "no-token", "error-form")
        licences = printed("check", *asked, *(word for tag in tags for word in ("--only", tag)))
    return (
        "## Servers without sessions\n\n"
        "If you give no URL of a session manager, `usher check` tests servers that give licences or keys without a\n"
        "[session](glossary.md#session). The key server of the first example accepts the [SPC](glossary.md#spc) only\n"
        "in a form in which nothing is percent-coded. The command sent a form with percent-coded values, and the\n"
        "server refused this request. So the command tried the other [forms](protocol.md#a-fairplay-key-server), and\n"
        "names the options for the form that the server accepts:\n\n"
        f"{keys}\n"
        "The licence server of the second example (`Tests/cli/license_server.py`) gives a licence for any token:\n\n"
        f"{licences}"
    )


def section(case: Case) -> str:
    with reference(case) as asked:
        probe = printed("probe", *asked, "--heartbeats", "1", "--quiet")
    with reference(case) as asked:
        check = printed("check", *asked, "--limit", "2", "--seed", "1", "--stories", "0", "--quiet")
    check = re.sub(r"^   statement.*?\n\n(?=[✗!0-9T])", "", check, flags=re.M | re.S)
    applied = f"The head-end applies `Fault.{case.code}` to every request of the route `{case.route}`."
    return f"### {case.title}\n\n{applied}\n\n{probe}\n{check}"


def sections() -> list[tuple[str, Callable[[], str]]]:
    """Returns the name of each section after the introduction, and the function that makes it."""
    found: list[tuple[str, Callable[[], str]]] = [("works", works), ("ten-faults", ten_faults)]
    found += [("key-servers", key_servers), ("without-sessions", without_sessions)]
    return found + [(case.title, lambda case=case: section(case)) for case in CASES]  # type: ignore[misc]


def page() -> str:
    made = [make() for _, make in sections()]
    return "\n".join([INTRODUCTION, *made[:4], TWENTY_FAULTS, *made[4:]])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
