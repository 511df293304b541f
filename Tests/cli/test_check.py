"""Tests usher check: it reports no fault of a right server, names each fault of a wrong one, and shortens stories."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cli import key_server, license_server, right_server
from cli.key_server import KeyServer
from cli.license_server import LicenseServer
from cli.right_server import RightServer
from cli.running import KEY, KID, Usher, aim, interrupted, press_ctrl_c, process

from pytest_usher import HeadEndFactory
from usher.cli.exits import Exit
from usher.testing import fairplay
from usher.testing.headend import Certificate, ExpressPlay, Fault, Fps, HeadEnd

SEED = ["--seed", "1"]
ALONE = {"license-alone", "license-token"}
"""The names of the statements about licences without a session manager."""


def tags(found: dict[str, Any], outcome: str) -> set[str]:
    return {each["tag"] for each in found["statements"] if each["outcome"] == outcome}


def test_check_ofTheRightServer_findsNothing(usher: Usher) -> None:
    token = usher.token_file(right_server.CONTENT_TOKEN)
    with RightServer(limit=3) as server:
        asked = [server.url, "--token-file", token, "--license", server.license_url, "--key-id", "0" * 32]
        ran = usher("check", *asked, *SEED, "--json")
        assert server.held == 0
    found = ran.json
    assert (ran.code, found["ok"], found["limit"], found["period_s"]) == (Exit.OK, True, 3, 30)
    assert found["rotation"] == "only the newest token is valid"
    assert tags(found, "failed") == tags(found, "warned") == set()
    waiting = {"lease", "lease-two", "expiry"}
    assert tags(found, "skipped") == {"retry-after", "renewal", *waiting, *ALONE, *key_server.FAULTS}


def test_check_ofTheReferenceHeadEnd_asksEveryStatementInVirtualTime(headend: HeadEnd, usher: Usher) -> None:
    asked = [*aim(headend, usher), "--certificate", headend.certificate_url("fairplay")]
    ran = usher("check", *asked, "--control", headend.control_url, *SEED, "--json")
    assert ran.code == Exit.OK
    skipped = {"retry-after", *ALONE, *(key_server.FAULTS - {"certificate"})}
    assert tags(ran.json, "skipped") == skipped and tags(ran.json, "warned") == set()
    assert headend.sessions.active() == []


def test_check_ofV2_judgesTheLicenceThatOpensTheSession(headend: HeadEnd, usher: Usher) -> None:
    ran = usher("check", *aim(headend, usher, api="v2"), *SEED, "--json")
    assert ran.code == Exit.OK and {"limit-code", "setup-token", "heartbeat-next"} <= tags(ran.json, "passed")
    assert "setup" not in headend.journal.routes()


def test_check_ofEnforcedSessions_asksRenewals(headend_factory: HeadEndFactory, usher: Usher) -> None:
    headend = headend_factory(enforced=frozenset({"clearkey"}))
    arguments = ["check", *aim(headend, usher), "--stories", "0", *SEED, "--json"]
    ran = usher(*arguments)
    assert ran.code == Exit.OK and "renewal" in tags(ran.json, "passed")


@pytest.mark.parametrize(
    ("grace", "failed", "warned"),
    [(1.5, {"lease-two"}, set()), (5.0, set(), {"expiry"})],
)
def test_check_lease_isMeasured(
    grace: float, failed: set[str], warned: set[str], headend_factory: HeadEndFactory, usher: Usher
) -> None:
    headend = headend_factory(grace=grace)
    ran = usher("check", *aim(headend, usher), "--control", headend.control_url, *SEED, "--json")
    assert (tags(ran.json, "failed"), tags(ran.json, "warned")) == (failed, warned)
    assert ran.code == (Exit.FOUND if failed else Exit.OK)


@pytest.mark.parametrize(
    ("route", "fault", "tag", "story"),
    [
        ("setup", Fault.fields(heartbeat=0.2), "period-range", "setup 1"),
        ("setup", Fault.status(503, retry_after="soon"), "retry-after", "setup 1"),
        ("license", Fault.fields(keys=[]), "license", "setup 1 → license 1"),
    ],
    ids=lambda value: getattr(value, "label", None) or str(value),
)
def test_check_fault_isFoundAndItsStoryShortened(
    route: str, fault: Fault, tag: str, story: str, headend: HeadEnd, usher: Usher
) -> None:
    headend.faults.add(route, fault, always=True)
    ran = usher("check", *aim(headend, usher), "--limit", "2", "--stories", "0", "--only", tag, "--json")
    (found,) = ran.json["statements"]
    assert found["outcome"] == ("warned" if tag == "period-range" else "failed")
    assert found["story"] == story
    assert len(found["exchanges"]) == story.count("→") + 1 and found["words"]


def test_check_report_asTextAndJUnit_namesStoryAndRequests(headend: HeadEnd, usher: Usher, tmp_path: Path) -> None:
    headend.faults.add("teardown", Fault.error(1003, status=200, processed=True), always=True)
    file = tmp_path / "check.xml"
    ran = usher("check", *aim(headend, usher), "--junit", str(file), *SEED)
    assert ran.code == Exit.FOUND
    assert "✗ teardown: A teardown succeeds, and its reply has no error code" in ran.out
    assert "request 2, teardown 1: the reply has HTTP 200, but an error code: 1003." in ran.out
    assert "The shortest story, 2 requests: setup 1 → teardown 1" in ran.out
    assert "> nv-authorizations: <session token " in ran.out and "\x1b" not in ran.out
    suite = ElementTree.parse(file).getroot()
    failures = {case.get("name", "").partition(":")[0]: case.find("failure") for case in suite.iter("testcase")}
    failed = {tag for tag, failure in failures.items() if failure is not None}
    assert int(suite.get("tests", "")) == len(failures) and int(suite.get("failures", "")) == len(failed)
    assert "teardown" in failed and "setup 1 → teardown 1" in (failures["teardown"].text or "")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("route", "reply", "tag"),
    [
        ("setup", {"sessionToken": "\ud800"}, "token-form"),
        ("teardown", {"errorCode": "\ud800\x01", "\udfff": ["\ud800"]}, "teardown"),
        ("certificate", {"certificate": "\ud800"}, "certificate"),
    ],
    ids=["token", "code", "certificate"],
)
def test_check_replyWithALoneSurrogate_isInEveryReport(
    route: str, reply: dict[str, Any], tag: str, headend: HeadEnd, usher: Usher, tmp_path: Path
) -> None:
    """The JSON of a reply has one half of a surrogate pair, which UTF-8 cannot encode. All three reports (text, JSON,
    JUnit) name the fault. They show the character as its escape in JSON; but if it is in a token, they show the name of
    the token instead."""
    headend.faults.add(route, Fault.reply(200, body=reply, processed=True), always=True)
    asked = ["check", *aim(headend, usher), "--certificate", headend.certificate_url("fairplay")]
    asked += ["--limit", "2", "--stories", "0", "--only", tag]
    file = tmp_path / "check.xml"
    shown, told = usher(*asked, "--junit", str(file)), usher(*asked, "--json")
    assert (shown.code, told.code) == (Exit.FOUND, Exit.FOUND)
    (found,) = told.json["statements"]
    failure = ElementTree.parse(file).getroot().find("testcase/failure")
    assert found["outcome"] == "failed" and failure is not None
    escape = "<session token 1>" if route == "setup" else "\\ud800"
    assert escape in shown.out and escape in (failure.text or "")
    body = json.loads(found["exchanges"][-1]["reply"]["body"])
    assert body == ({"sessionToken": escape} if route == "setup" else reply)
    if route == "teardown":
        words = "the reply has HTTP 200, but an error code: \\ud800"
        assert words in shown.out and words in found["words"] and words in failure.get("message", "")


def test_check_ofAServerThatFreesSlotsLate_saysSoAndNothingElse(usher: Usher) -> None:
    token = usher.token_file(right_server.CONTENT_TOKEN)
    with RightServer(limit=2, slot_delay_s=0.3) as server:
        asked = ["check", server.url, "--token-file", token, "--limit", "2", "--stories", "0", "--json"]
        ran = usher(*asked)
    assert tags(ran.json, "failed") == {"slot-free"}


def check_of_keys(headend: HeadEnd, usher: Usher, *arguments: str) -> Any:
    """Runs a check with an SPC. Returns the JSON of its report."""
    headend.add_key(KID, KEY, key_server.CONTENT_ID)
    spc = usher.folder / "spc.bin"
    spc.write_bytes(fairplay.make_spc(key_server.CONTENT_ID))
    token = usher.token_file(headend.content_token("alice"))
    keys = ["--key-system", "fairplay", "--payload", str(spc), *arguments]
    return usher("check", headend.ssm_url, "--token-file", token, *keys, "--stories", "0", *SEED, "--json").json


def test_check_ofARightKeyServer_findsNothing(headend: HeadEnd, usher: Usher) -> None:
    with KeyServer() as server:
        found = check_of_keys(headend, usher, *server.arguments)
    assert found["ok"] and tags(found, "failed") == tags(found, "warned") == set()
    assert tags(found, "passed") >= key_server.FAULTS


@pytest.mark.parametrize("fault", sorted(key_server.FAULTS))
def test_check_ofAWrongKeyServer_namesTheFault(fault: str, headend: HeadEnd, usher: Usher) -> None:
    with KeyServer({fault}) as server:
        found = check_of_keys(headend, usher, *server.arguments)
    assert tags(found, "failed") | tags(found, "warned") == {fault}
    (judged,) = [each for each in found["statements"] if each["tag"] == fault]
    assert judged["words"] and 1 <= len(judged["exchanges"]) <= 2


@pytest.mark.parametrize(("reply", "form"), [("raw", "der"), ("json", "pem"), ("xml", "base64"), ("base64", "json")])
def test_check_ofTheReferenceKeyServer_takesEveryForm(
    reply: Any, form: Any, headend_factory: HeadEndFactory, usher: Usher
) -> None:
    certificate, errors = Certificate(form=form), ExpressPlay(errors="json")
    headend = headend_factory(fps=Fps(reply=reply), certificate=certificate, expressplay=errors)
    urls = ["--key-server", headend.fps_url, "--certificate", headend.fps_certificate_url]
    rights = ["--entitlement", headend.entitlement_url, "--content-id", key_server.CONTENT_ID]
    found = check_of_keys(headend, usher, *urls, *rights)
    assert tags(found, "failed") == tags(found, "warned") == set()
    assert tags(found, "passed") >= key_server.FAULTS
    assert headend.sessions.active() == []


def test_check_keyServersWithoutSpc_areRefused(usher: Usher) -> None:
    asked = ["check", "https://a.example", "--token-file", usher.token_file("some-secret")]
    assert "--payload, an SPC" in usher(*asked, "--key-server", "https://k.example").err
    keys = ["--key-system", "fairplay", "--payload", __file__, "--entitlement", "https://e.example"]
    assert "--entitlement needs --content-id" in usher(*asked, *keys).err


def test_check_ofAKeyServerWithoutSessions_needsNeitherSessionManagerNorToken(usher: Usher) -> None:
    with KeyServer() as server:
        ran = usher("check", *spc_options(usher), *server.arguments, *SEED, "--json")
        shown = usher("check", *spc_options(usher), *server.arguments, *SEED)
    found = ran.json
    assert ran.code == Exit.OK and tags(found, "failed") == tags(found, "warned") == set()
    assert tags(found, "passed") >= key_server.FAULTS | {"complete", "error-form", "final"}
    reasons = {each["tag"]: each["words"] for each in found["statements"] if each["outcome"] == "skipped"}
    assert reasons["heartbeat"] == reasons["license"] == "needs the URL of the session manager"
    assert f"usher check {server.url}/keys" in shown.out and "needs the URL of the session manager" in shown.out


@pytest.mark.parametrize("fault", sorted(key_server.FAULTS))
def test_check_ofAWrongKeyServerWithoutSessions_namesTheFault(fault: str, usher: Usher) -> None:
    with KeyServer({fault}) as server:
        ran = usher("check", *spc_options(usher), *server.arguments, *SEED, "--json")
    assert ran.code == Exit.FOUND and tags(ran.json, "failed") == {fault}


FORM_OPTIONS = {
    "raw": [],
    "form": ["--request-format", "form"],
    "form-plain": ["--request-format", "form", "--spc-urlencode", "none"],
    "form-whole": ["--request-format", "form", "--spc-urlencode", "whole"],
    "base64": ["--request-format", "base64"],
    "json": ["--request-format", "json"],
}


def spc_options(usher: Usher) -> list[str]:
    """Writes an SPC whose base64 has all characters that a form must percent-code. Returns the options for it."""
    spc = fairplay.make_spc(key_server.CONTENT_ID, nonce=b"\0\0\xfb\xef\xbe\xff\xff\xff" * 2)
    assert {"+", "/"} <= set(base64.b64encode(spc).decode())
    path = usher.folder / "spc.bin"
    path.write_bytes(spc)
    return ["--key-system", "fairplay", "--payload", str(path)]


@pytest.mark.parametrize("form", key_server.FORMS)
def test_check_ofAKeyServer_sendsTheSpcInItsForm(form: str, usher: Usher) -> None:
    field = "assetId" if form not in ("raw", "base64") else None
    more = [] if field is None else ["--content-id-field", field, "--content-id", key_server.CONTENT_ID]
    more += ["--response-path", "data.ckc"]
    with KeyServer(form=form, content_field=field, path="data.ckc") as server:
        asked = ["check", *spc_options(usher), "--key-server", f"{server.url}/keys", *FORM_OPTIONS[form], *more]
        found = usher(*asked, *SEED, "--json").json
    assert tags(found, "failed") == set() and {"ckc", "ckc-refused"} <= tags(found, "passed")


@pytest.mark.parametrize("form", [form for form in key_server.FORMS if form != "raw"])
def test_check_ofAKeyServerWithAnotherForm_namesTheForm(form: str, usher: Usher) -> None:
    with KeyServer(form=form) as server:
        asked = ["check", *spc_options(usher), "--key-server", f"{server.url}/keys"]
        found = usher(*asked, *SEED, "--json").json
    assert tags(found, "failed") == {"ckc"}
    (judged,) = [each for each in found["statements"] if each["tag"] == "ckc"]
    words = " ".join(FORM_OPTIONS[form]) + (" --spc-urlencode value" if form == "form" else "")
    assert judged["words"] == f"it got HTTP 400, code 1207; the server gives a CKC with {words}"


def test_check_ofTheReferenceKeyServer_takesEveryRequestForm(headend_factory: HeadEndFactory, usher: Usher) -> None:
    for form, options in FORM_OPTIONS.items():
        headend = headend_factory(fps=Fps(requests=frozenset({form})))  # type: ignore[arg-type]
        headend.add_key(KID, KEY, key_server.CONTENT_ID)
        asked = ["check", *spc_options(usher), "--key-server", headend.fps_url, *options]
        found = usher(*asked, *SEED, "--json").json
        assert tags(found, "failed") == set() and "ckc" in tags(found, "passed"), form


def license_options(usher: Usher, server: LicenseServer, *, token: bool = True) -> list[str]:
    given = ["--token-file", usher.token_file(license_server.CONTENT_TOKEN)] if token else []
    return ["check", "--license", server.url, "--key-id", KID.hex(), *given, *SEED, "--json"]


def test_check_ofLicencesWithoutSessions_findsNothing(usher: Usher) -> None:
    with LicenseServer() as server:
        ran = usher(*license_options(usher, server))
    assert ran.code == Exit.OK and tags(ran.json, "failed") == set()
    assert tags(ran.json, "passed") >= license_server.FAULTS
    with LicenseServer({"no-token"}) as server:
        found = usher(*license_options(usher, server, token=False)).json
    assert found["ok"] and "license-alone" in tags(found, "passed")
    (skipped,) = [each for each in found["statements"] if each["tag"] == "license-token"]
    assert skipped["words"] == "needs --token-file"


@pytest.mark.parametrize("fault", sorted(license_server.FAULTS))
def test_check_ofAWrongLicenceServer_namesTheFault(fault: str, usher: Usher) -> None:
    with LicenseServer({fault}) as server:
        ran = usher(*license_options(usher, server))
    assert ran.code == Exit.FOUND and tags(ran.json, "failed") == {fault}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give the URL of a server"),
        (["--license", "https://l.example"], "--license needs --key-id or --payload"),
        (["--key-server", "K", "--spc-urlencode", "none"], "--spc-urlencode needs --request-format form"),
        (["--key-server", "K", "--content-id-field", "id"], "--content-id-field needs --request-format form or json"),
        (
            ["--key-server", "K", "--request-format", "json", "--content-id-field", "id"],
            "--content-id-field needs --content-id",
        ),
        (["--key-server", "K", "--content-id", "film"], "--content-id needs --entitlement, or --content-id-field"),
        (["--certificate", "https://c.example", "--request-format", "json"], "need --key-server"),
    ],
)
def test_check_withoutSessions_wrongArgumentsAreNamed(arguments: list[str], words: str, usher: Usher) -> None:
    given = ["https://k.example" if word == "K" else word for word in arguments]
    ran = usher("check", *(spc_options(usher) if "--key-server" in given else []), *given)
    assert ran.code == Exit.USAGE and ran.out == ""
    assert ran.err.startswith("usher check: ") and words in ran.err and ran.err.count("\n") == 1


def test_check_unreachable_exits3(usher: Usher) -> None:
    ran = usher("check", "http://127.0.0.1:9/ssm", "--token-file", usher.token_file("some-secret"), "--json")
    assert ran.code == Exit.UNREACHABLE
    assert tags(ran.json, "failed") == {"complete", "setup-success"}


@pytest.mark.parametrize("route", ["setup", "heartbeat"])
def test_check_interrupted_leavesNoSession(route: str, headend: HeadEnd, usher: Usher) -> None:
    headend.faults.add(route, Fault.stall("after"))
    with process("check", *aim(headend, usher)) as made:
        headend.wait_held(1, 30)
        press_ctrl_c(made)
        headend.release()
        code, err = interrupted(made)
    assert (code, err.strip().splitlines()[-1:]) == (Exit.INTERRUPTED, ["usher check: interrupted"])
    assert "Traceback" not in err and headend.sessions.active() == []


def test_check_wrongArguments_areNamed(usher: Usher) -> None:
    assert "--limit: give a number from 1" in usher("check", "https://a.example", "--limit", "0").err
    assert "there is no statement limits" in usher("check", "https://a.example", "--only", "limits").err
    listed = usher("check", "--list", "--json").json
    assert {"limit-together", "lease-two"} <= {each["tag"] for each in listed}
