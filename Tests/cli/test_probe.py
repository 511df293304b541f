"""Tests usher probe: what it plays, what it shows, what it says about faults, and that it leaves no session."""

from __future__ import annotations

import json
import socket
import uuid
from pathlib import Path
from typing import Any

import pytest
from cli.running import KID, Usher, aim, interrupted, press_ctrl_c, process

from pytest_usher import HeadEndFactory
from usher.cli.exits import Exit
from usher.testing.headend import Fault, HeadEnd


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {step["step"]: step["outcome"] for step in found["steps"]}


def test_probe_ofAHeadEndThatWorks_playsOnceAndShowsEachRequest(headend: HeadEnd, usher: Usher) -> None:
    ran = usher("probe", *aim(headend, usher))
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert headend.journal.routes() == ["setup", "license", "heartbeat", "heartbeat", "teardown"]
    headend.assert_clean()
    lines = [line.strip() for line in ran.out.splitlines()]
    assert f"> POST {headend.ssm_url}/v1/sessions/setup" in lines
    assert lines.count("> nv-authorizations: <content token>") == 1
    assert "> nv-authorizations: <content token>,<session token 1>" in lines
    assert "> nv-authorizations: <session token 3>" in lines
    assert '< {"sessionToken": "<session token 1>", "heartbeat": 60}' in lines
    assert "the session is set up; the server wants a keep-alive every 60 s" in lines
    assert lines[-1] == "A player with libusher can play here."
    assert "\x1b" not in ran.out and not any(line.endswith(" ") for line in ran.out.splitlines())


def test_probe_asJson_hasStepsTimesAndExchanges(headend: HeadEnd, usher: Usher) -> None:
    ran = usher("probe", *aim(headend, usher), "--heartbeats", "1", "--json")
    found = ran.json
    assert (ran.code, found["ok"]) == (Exit.OK, True)
    assert outcomes(found) == {"set-up": "ok", "licence": "ok", "heartbeat 1": "ok", "teardown": "ok"}
    (exchange,) = found["steps"][0]["exchanges"]
    assert exchange["reply"]["status"] == 200 and exchange["failure"] is None
    assert {"total", "name", "connect", "reply"} == set(exchange["timing_ms"])
    for entry in headend.journal.entries():
        assert not any(part.raw in ran.out for part in entry.parts)


def test_probe_ofV2_opensTheSessionByTheLicence(headend: HeadEnd, usher: Usher) -> None:
    ran = usher("probe", *aim(headend, usher, api="v2"), "--quiet")
    assert ran.code == Exit.OK and "which opens the session" in ran.out
    assert headend.journal.routes() == ["license", "heartbeat", "heartbeat", "teardown"]
    assert headend.sessions.active() == []


def test_probe_withoutALicenceUrl_skipsTheLicence(headend: HeadEnd, usher: Usher) -> None:
    ran = usher(
        "probe",
        headend.ssm_url,
        "--token-file",
        usher.token_file(headend.content_token()),
        "--json",
    )
    assert ran.code == Exit.OK and outcomes(ran.json)["licence"] == "skipped"
    assert headend.journal.routes() == ["setup", "heartbeat", "heartbeat", "teardown"]


@pytest.mark.parametrize("end", ["\n", "\r\n\r\n", "  \n", ""])
def test_probe_tokenFileWithALineBreakAtItsEnd_works(end: str, headend: HeadEnd, usher: Usher) -> None:
    token = usher.token_file(headend.content_token(), end)
    assert usher("probe", headend.ssm_url, "--token-file", token, "--heartbeats", "0").code == Exit.OK


def test_probe_tls_needsTheAuthority(headend_factory: HeadEndFactory, usher: Usher) -> None:
    headend = headend_factory(tls=True)
    arguments = ["probe", headend.ssm_url, "--token-file", usher.token_file(headend.content_token()), "--quiet"]
    ran = usher(*arguments)
    assert ran.code == Exit.UNREACHABLE
    assert "no secure connection to 127.0.0.1: its certificate is not accepted" in ran.out and "--ca-file" in ran.out
    assert usher(*arguments, "--ca-file", str(headend.ca_file)).code == Exit.OK


def test_probe_unreachableHeadEnds_areNamed(usher: Usher) -> None:
    token = usher.token_file("some-token")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    ran = usher("probe", f"http://127.0.0.1:{port}/ssm", "--token-file", token)
    assert ran.code == Exit.UNREACHABLE
    assert f"no program listens on 127.0.0.1, port {port}: the connection was refused" in ran.out
    ran = usher("probe", "https://no-such-host.invalid/ssm", "--token-file", token, "--json")
    assert ran.code == Exit.UNREACHABLE and "is not known to the name server" in ran.json["steps"][0]["words"]


@pytest.mark.parametrize(
    ("route", "fault", "step", "words"),
    [
        ("setup", Fault.error(1007), "set-up", "code 1007"),
        ("setup", Fault.html_page(), "set-up", "HTTP 200"),
        ("setup", Fault.redirect("https://elsewhere.example/?token=secret"), "set-up", "HTTP 302"),
        ("setup", Fault.drop("after"), "set-up", "closed the connection without a reply"),
        ("setup", Fault.endless(20_000_000), "set-up", "larger than the limit"),
        ("license", Fault.truncate(), "licence", "the connection ended before the end of the reply"),
        ("heartbeat", Fault.error(1006), "heartbeat 1", "code 1006"),
        ("heartbeat", Fault.without("sessionToken"), "heartbeat 2", "code 1006"),
        ("teardown", Fault.error(1003, status=200), "teardown", "code 1003"),
    ],
    ids=lambda value: getattr(value, "label", None) or str(value),
)
def test_probe_fault_isSaidWithTheNextStep(
    route: str, fault: Fault, step: str, words: str, headend: HeadEnd, usher: Usher
) -> None:
    headend.faults.add(route, fault, always=True)
    ran = usher("probe", *aim(headend, usher), "--json")
    assert (ran.code, ran.json["ok"]) == (Exit.FOUND, False)
    (failed,) = [each for each in ran.json["steps"] if each["outcome"] == "failed"][:1]
    assert failed["step"] == step and words in failed["words"], failed["words"]
    assert failed["next"] and "secret" not in ran.out


def test_probe_halfConfiguredHeadEnd_namesWhatIsMissing(headend: HeadEnd, usher: Usher) -> None:
    """The command says what is wrong in each of three cases: the URL of the session manager lacks the tenant; the
    head-end has no key with this key id; `--license` names a path that the head-end does not have."""
    *asked, _ = aim(headend, usher)
    token = asked[asked.index("--token-file") + 1]
    bare = usher("probe", f"{headend.url}/ssm", "--token-file", token, "--json")
    assert bare.code == Exit.FOUND and "HTTP 404" in bare.json["steps"][0]["words"]
    for arguments, words in (
        ([*asked, "ff" * 16], "code "),
        (
            [
                headend.ssm_url,
                "--token-file",
                token,
                "--license",
                f"{headend.url}/nowhere",
                "--key-id",
                "0" * 32,
            ],
            "404",
        ),
    ):
        ran = usher("probe", *arguments, "--json")
        (step,) = [step for step in ran.json["steps"] if step["step"] == "licence"]
        assert (ran.code, step["outcome"]) == (Exit.FOUND, "failed"), step
        assert words in step["words"] and step["next"], step
    assert headend.sessions.active() == []


def test_probe_heartbeatsThatFail_areTriedUntilTheLeaseEnds(headend: HeadEnd, usher: Usher) -> None:
    headend.faults.add("heartbeat", Fault.status(500), always=True)
    found = usher("probe", *aim(headend, usher), "--json").json
    assert outcomes(found) == {"set-up": "ok", "licence": "ok", "heartbeat 1": "failed", "teardown": "ok"}
    step = found["steps"][2]
    assert len(step["exchanges"]) > 5 and "HTTP 500" in step["words"]
    shown = usher("probe", *aim(headend, usher)).out
    assert shown.count("< 500 Internal Server Error") == 2 and "more attempts; --json has them" in shown


def test_probe_serverThatNeverReplies_endsAtTheTimeout(headend: HeadEnd, usher: Usher) -> None:
    headend.faults.add("setup", Fault.stall("before"), always=True)
    ran = usher("probe", *aim(headend, usher), "--timeout", "0.3", "--json")
    assert ran.code == Exit.FOUND and "sent no complete reply in time" in ran.json["steps"][0]["words"]
    headend.release()


@pytest.mark.parametrize("route", ["setup", "license", "heartbeat", "teardown"])
def test_probe_interrupted_leavesNoSession(route: str, headend: HeadEnd, usher: Usher) -> None:
    headend.faults.add(route, Fault.stall("after"))
    with process("probe", *aim(headend, usher)) as made:
        headend.wait_held(1, 30)
        press_ctrl_c(made)
        headend.release()
        code, err = interrupted(made)
    assert (code, err) == (Exit.INTERRUPTED, "usher probe: interrupted\n")
    assert headend.sessions.active() == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give the URL of the session manager"),
        (["https://ssm.example"], "--token-file is missing"),
        (["https://ssm.example", "--token-file", "/nonexistent"], "--token-file: /nonexistent: No such file"),
        (["https://ssm.example", "--token-file", "EMPTY"], "is empty"),
        (["https://ssm.example", "--token-file", "BINARY"], "is not text"),
        (["https://ssm.example", "--token-file", "UMLAUT"], "a character that an HTTP header cannot have"),
        (["ssm.example", "--token-file", "GOOD"], "ssm.example is no URL: it begins with https://HOST/"),
        (["http://ssm.example", "--token-file", "GOOD"], "plain http to ssm.example sends the tokens in clear"),
        (["https://ssm.example:port", "--token-file", "GOOD"], "is no URL"),
        (["https://u:p@ssm.example", "--token-file", "GOOD"], "leave out user and password"),
        (["https://ssm.example", "--token-file", "GOOD", "--header", "nonsense"], 'give "Name: value"'),
        (["https://ssm.example", "--token-file", "GOOD", "--key-id", "12"], "12 is no key id"),
        (["https://ssm.example", "--token-file", "GOOD", "--v2"], "--v2 needs a licence request"),
        (["https://ssm.example", "--token-file", "GOOD", "--ca-file", "/nonexistent"], "--ca-file: /nonexistent"),
        (["https://ssm.example", "--token-file", "GOOD", "--set", "jitter_permile=5"], "did you mean"),
        (["https://ssm.example", "--token-file", "GOOD", "--set", "period_min_ms=text"], "period_min_ms"),
        (["--ready-file", "GOOD"], "is not JSON"),
    ],
)
def test_probe_wrongArguments_areNamedInOneLine(arguments: list[str], text: str, usher: Usher, tmp_path: Path) -> None:
    contents = {
        "EMPTY": b"\n \n",
        "BINARY": b"\xff\xfe\x00",
        "UMLAUT": "tök".encode(),
        "GOOD": b"token\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    given = [str(tmp_path / word) if word in contents else word for word in arguments]
    ran = usher("probe", *given)
    assert (ran.code, ran.out if not ran.out.startswith("usher probe ") else "") == (
        Exit.USAGE,
        "",
    )
    assert ran.err.startswith("usher probe: ") and text in ran.err and ran.err.count("\n") == 1


@pytest.mark.parametrize("form", [KID.hex(), str(uuid.UUID(bytes=KID)), "AAECAwQFBgcICQoLDA0ODw"])
def test_probe_keyId_hasAnyUsualForm(form: str, headend: HeadEnd, usher: Usher) -> None:
    *asked, _ = aim(headend, usher)
    assert outcomes(usher("probe", *asked, form, "--json").json)["licence"] == "ok"


def test_probe_readyFile_describesTheHeadEnd(headend: HeadEnd, usher: Usher, tmp_path: Path) -> None:
    headend.add_key(bytes(16), bytes(16))
    ready = {
        "ssm_url": headend.ssm_url,
        "license_urls": {"clearkey": headend.license_url("clearkey")},
        "tokens": {"alice": headend.content_token("alice")},
        "key_ids": [bytes(16).hex()],
    }
    (tmp_path / "ready.json").write_text(json.dumps(ready))
    assert usher("probe", "--ready-file", str(tmp_path / "ready.json")).code == Exit.OK
    assert headend.journal.routes() == ["setup", "license", "heartbeat", "heartbeat", "teardown"]
