"""No log line, event, error or repr contains a secret: the checks of test_canaries.py, here for hooks, token maps,
SSP V2, customer SSM and loaders."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from test_canaries import KEYS, session_tokens
from told import Told, spelled

import usher
from stage import CHALLENGE, Stage
from stage import fps as fps_stage
from stage import v2 as v2_stage
from stage.fps import CDM
from usher.testing.headend import Fault

CLEARKEY = usher.KeySystem.CLEARKEY


def fail(told: Told, call: Callable[[], object]) -> None:
    with pytest.raises(usher.UsherError) as refused:
        call()
    told.add(refused.value)


def test_secrets_ofHooks_areInNothingThatIsTold(stage: Stage) -> None:
    told, header, payload = Told(), secrets.token_urlsafe(32), secrets.token_bytes(64)
    token = stage.headend.content_token(session_control=False, marker=secrets.token_hex(16))

    class Own(usher.CommonDelegate):
        def http_headers(self, call: usher.HookCall[dict[str, str]]) -> dict[str, str]:
            told.add(call)
            return {**call.builtin(), "X-Api-Key": header}

        def license_body(self, call: usher.HookCall[bytes]) -> bytes:
            told.add(call)
            return CHALLENGE if call.data == payload else call.data or b""

        def license_from_reply(self, call: usher.HookCall[bytes]) -> bytes:
            told.add(call)
            return call.builtin()

    delegate = Own(stage.context, license_url=stage.headend.license_url("clearkey"))
    playback = stage.play(token, delegate=delegate, tag="a")
    licence = playback.get_license(CLEARKEY, payload)
    told.add(licence, delegate, playback)
    stage.headend.faults.add("license", Fault.error(1003, message=f"{token} {header}"))
    fail(told, lambda: playback.get_license(CLEARKEY, payload))
    stage.settle()
    told.add_stage(stage)
    told.check({"token": token, "header": header, **spelled("payload", payload), **KEYS})


def test_secrets_ofATokenMap_areInNothingThatIsTold(stage: Stage) -> None:
    told = Told()
    token, other = (stage.headend.content_token(marker=secrets.token_hex(16)) for _ in range(2))
    delegate = usher.MultiInstanceDelegate(
        stage.context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url
    )
    delegate.tokens["movie"] = token
    delegate.tokens["other"] = other
    told.add(delegate, delegate.tokens)
    playback = stage.player.play(None, delegate=delegate, content_id="movie", tag="a")
    told.add(playback.get_license(CLEARKEY, CHALLENGE))
    with pytest.raises(KeyError) as missing:
        delegate.tokens["none"]
    told.add(missing.value, playback)
    stage.headend.faults.add("license", Fault.error(1003, message=token))
    fail(told, lambda: playback.get_license(CLEARKEY, CHALLENGE))
    playback.close()
    stage.settle()
    told.add_stage(stage)
    told.check({"token": token, "other token": other, **KEYS, **session_tokens(stage.headend)})


def test_secrets_ofV2_areInNothingThatIsTold(stage: Stage) -> None:
    told, token = Told(), stage.headend.content_token(marker=secrets.token_hex(16))
    playback = v2_stage.play(stage, token=token, tag="a")
    told.add(v2_stage.licence(playback), playback)
    stage.advance(130_000)
    sent = session_tokens(stage.headend)
    for route in ("heartbeat", "teardown"):
        stage.headend.faults.add(route, Fault.error(1003, message=" ".join([token, *sent.values()])), always=True)
    stage.advance(130_000)
    playback.close(usher.CloseMode.TEARDOWN)
    stage.advance(60_000)
    told.add_stage(stage)
    assert {"KEPT_ALIVE", "HEARTBEAT_ERROR"} <= set(stage.events.types("a"))
    told.check({"token": token, **KEYS, **sent, **session_tokens(stage.headend)})


def test_secrets_ofTheHostsOwnServers_areInNothingThatIsTold(stage: Stage) -> None:
    told, licence, payload = Told(), secrets.token_bytes(64), secrets.token_bytes(64)

    class Own(usher.CustomerDelegate):
        def license(self, request: usher.CustomerRequest) -> Any:
            answer = usher.LicenseResponse(license=licence, heartbeat_s=60, renew_type=usher.RenewType.HEARTBEAT)
            told.add(request, answer)
            return answer

        def heartbeat(self, call: usher.SessionCall) -> usher.Status:
            told.add(call)
            return usher.Status.TRANSPORT if len(told.lines) > 40 else usher.Status.OK

    delegate = Own(stage.context)
    playback = stage.play(delegate=delegate, tag="a")
    told.add(playback.get_license(CLEARKEY, payload), delegate, playback)
    stage.advance(300_000)
    playback.close()
    stage.settle()
    told.add_stage(stage)
    told.check({**spelled("licence", licence), **spelled("payload", payload)})


@pytest.mark.parametrize("route", [usher.Route.KEY_SERVER, usher.Route.ENTITLEMENT])
def test_secrets_ofTheLoader_areInNothingThatIsTold(stage: Stage, route: usher.Route) -> None:
    told, header, cookie = Told(), secrets.token_urlsafe(32), secrets.token_hex(16)
    fps_stage.ready(stage)
    spcs: list[bytes] = []
    cdm = CDM()

    def make(request: usher.SPCRequest) -> bytes:
        told.add(request)
        spcs.append(cdm(request))
        return spcs[-1]

    options: dict[str, Any] = (
        {"route": route, "entitlement_url": stage.headend.entitlement_url} if route is usher.Route.ENTITLEMENT else {}
    )
    loader = fps_stage.loader(
        stage,
        make,
        extra_headers=f"X-Api-Key: {header}",
        customer_cookie=cookie,
        certificate_url=stage.headend.fps_certificate_url,
        **options,
    )
    playback = fps_stage.play(stage, tag="a")
    ckc = playback.get_resource(fps_stage.SKD)
    told.add(loader, playback)
    step = "rights" if route is usher.Route.ENTITLEMENT else "ckc"
    used = [value for entry in stage.headend.journal for name, value in entry.query if name == "ExpressPlayToken"]
    assert bool(used) == (route is usher.Route.ENTITLEMENT)
    stage.headend.faults.add(
        step, Fault.reply(400, body={"errorCode": 1, "message": " ".join([header, *used]), "errorText": " ".join(used)})
    )
    told.add(fps_stage.failed(playback))
    stage.settle()
    told.add_stage(stage)
    urls = {f"token of a URL {number}": value for number, value in enumerate(used)}
    told.check({"header": header, "cookie": cookie, **spelled("SPC", spcs[0]), **spelled("CKC", ckc), **urls, **KEYS})
