"""Tests the statements of docs/traces.md: a context writes its trace as log lines of level TRACE, each a JSON
object."""

from __future__ import annotations

import json
from typing import Any

import pytest

import usher
from stage import KID, Stage
from usher import EventType as E
from usher.testing.headend import Fault


def lines(stage: Stage, kind: str = "") -> list[dict[str, Any]]:
    return [line for line in map(json.loads, stage.trace) if kind in ("", line["kind"])]


def test_trace_ofASession_hasEachRequestReplyAndEvent(stage: Stage) -> None:
    """A host plays an item and gets a licence, the library sends a heartbeat, and the host closes the playback. The
    trace has the four requests in their order, each with its reply, and every event that the observer got."""
    playback = stage.play()
    stage.settle()
    stage.clear_keys(playback)
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert lines(stage)[0].keys() == {"t_ms", "kind", "unix_ms"}
    requests, replies = lines(stage, "request"), {line["request"]: line for line in lines(stage, "reply")}
    assert [line["operation"] for line in requests] == ["set-up", "licence", "heartbeat", "teardown"]
    assert [line["request"] for line in requests] == [1, 2, 3, 4] == sorted(replies)
    assert [line.get("keep_alive", False) for line in requests] == [False, False, True, False]
    assert {line["origin"] for line in requests} == {stage.headend.url}
    assert all(replies[number]["http_status"] == 200 for number in replies)
    assert [line["event"] for line in lines(stage, "event")] == stage.events.types()
    heartbeat = requests[2]
    assert heartbeat["t_ms"] == 60_000 == replies[3]["t_ms"]
    (play,) = lines(stage, "play")
    assert {line["playback"] for line in requests} == {play["playback"]}
    assert all(line["playback"] == play["playback"] for line in lines(stage, "event"))


def test_trace_ofARefusal_hasTheErrorOfTheEvent(stage: Stage) -> None:
    """The session manager refuses a set-up with words in quotation marks. The trace has status, codes and words of the
    event, as valid JSON."""
    stage.headend.faults.add("setup", Fault.error(1007, status=400, message='screen "kitchen" \u00e4 is one too many'))
    stage.play()
    stage.settle()
    error = stage.events.error(E.SETUP_ERROR)
    (line,) = [line for line in lines(stage, "event") if line["event"] == "SETUP_ERROR"]
    assert (line["status"], line["http_status"], line["service_code"]) == ("USHER_E_LIMIT", 400, 1007)
    assert line["message"] == error.message == 'screen "kitchen" \u00e4 is one too many'
    assert line["must_stop"] is True


def test_trace_ofAServerThatDoesNotReply_saysWhy(stage: Stage) -> None:
    """The session manager closes the connection without a reply. The trace has the failure, and no HTTP status."""
    stage.headend.faults.add("setup", Fault.drop(), always=True)
    stage.play()
    stage.settle()
    (reply,) = lines(stage, "reply")
    assert "http_status" not in reply
    assert reply["status"] == "USHER_E_TRANSPORT"
    assert reply["message"]


def test_trace_isWritten_onlyAtItsLevel(stage: Stage) -> None:
    """A host with the log level DEBUG gets no line of the trace."""
    levels: set[usher.LogLevel] = set()
    with usher.Context(
        clock="manual", proxy="", log=lambda level, _: levels.add(level), log_level=usher.LogLevel.DEBUG
    ) as context:
        delegate = usher.SSPDelegate(
            context, license_url=stage.headend.license_url("clearkey"), ssm_url=stage.headend.ssm_url
        )
        playback = usher.Player(context).play(stage.headend.content_token(), delegate=delegate)
        playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))
        playback.close()
        context.settle()
    assert usher.LogLevel.DEBUG in levels
    assert usher.LogLevel.TRACE not in levels


def test_trace_ofAUrlWithoutAPath_doesNotShowItsQuery(stage: Stage) -> None:
    """The URL of the licence server has a query right after the host. The trace shows only scheme, host and port."""
    word = "Canary12345678"
    delegate = stage.delegate(license_url=f"{stage.headend.url}?apikey={word}")
    playback = stage.play(delegate=delegate)
    stage.settle()
    with pytest.raises(usher.UsherError):
        playback.get_license(usher.KeySystem.CLEARKEY, usher.clear_key_request([KID]))
    assert {line["origin"] for line in lines(stage, "request")} == {stage.headend.url}
    assert not [line for line in stage.trace if word in line]
