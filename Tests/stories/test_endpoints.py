"""Tests the options that set the complete URL of each request, or the version in the URL. Without them the library
makes these URLs from the session manager's URL."""

from __future__ import annotations

import pytest

import usher
from stage import Stage, StageFactory
from stage import v2 as v2_stage
from usher.testing.headend import Fault

T = usher.CloseMode.TEARDOWN


def own(stage: Stage) -> dict[str, str]:
    """Returns complete URLs for the requests to the session manager, as options of a delegate. Each URL has a query of
    its own, so that the journal shows which URL the library used.
    """
    return {
        f"{name}_url": f"{stage.headend.tenant_url}/ssm/v1/sessions/{name}?by={name}"
        for name in ("setup", "heartbeat", "teardown")
    }


def asked_by(stage: Stage) -> list[tuple[str, str]]:
    """Returns for each request the route, and the value of `by` in the query."""
    return [(entry.route, dict(entry.query).get("by", "")) for entry in stage.headend.journal]


@pytest.mark.parametrize("ssm_url", [None, "http://127.0.0.1:9/nobody"])
def test_wholeUrls_ofTheSessionManager_areUsedAsTheyStand(stage: Stage, ssm_url: str | None) -> None:
    """The library uses complete URLs unchanged, with or without `ssm_url` (protocol.md: The session)."""
    playback = stage.play(delegate=stage.delegate(ssm_url=ssm_url, **own(stage)))
    stage.clear_keys(playback)
    stage.advance(60_000)
    playback.close()
    stage.settle()
    assert asked_by(stage) == [
        ("setup", "setup"),
        ("license", ""),
        ("heartbeat", "heartbeat"),
        ("teardown", "teardown"),
    ]


@pytest.mark.parametrize("left_out", ["setup_url", "heartbeat_url", "teardown_url"])
def test_wholeUrls_someOfThree_areRefusedWithoutASessionManager(stage: Stage, left_out: str) -> None:
    """Without `ssm_url` all three URLs are required, since without a teardown URL the session could not be torn down
    (protocol.md: The session)."""
    some = {name: url for name, url in own(stage).items() if name != left_out}
    with pytest.raises(usher.InvalidArgumentError):
        stage.delegate(ssm_url=None, **some)
    playback = stage.play(delegate=stage.delegate(**some))
    playback.wait_session()
    playback.close()
    stage.settle()
    assert asked_by(stage) == [(name, "" if left_out == f"{name}_url" else name) for name in ("setup", "teardown")]


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_renewalUrl_isWhereWidevineIsRenewed(stage_factory: StageFactory, v2: bool) -> None:
    """The library sends Widevine renewals to `renewal_url`. This option exists because documents and clients disagree
    about the path of renewals (protocol.md: Heartbeats or renewals)."""
    stage = stage_factory(headend={"enforced": {"widevine"}, "grace": 3.0})
    place = {"renewal_url": f"{stage.headend.tenant_url}/ssm/v1/sessions/renewal-license-wv?by=renewal"}
    playback = (
        v2_stage.play(stage, "widevine", **place) if v2 else stage.play(delegate=stage.delegate("widevine", **place))
    )
    v2_stage.licence(playback, "widevine")
    v2_stage.licence(playback, "widevine", type=usher.LicenseType.RENEWAL)
    playback.close(T)
    stage.settle()
    assert ("renewal-wv", "renewal") in asked_by(stage)


def test_renewalUrl_missing_failsTheRenewalAndNotTheSession(stage_factory: StageFactory) -> None:
    """The host sets no `ssm_url` but a separate URL for each request, and leaves out `renewal_url`. A renewal then
    fails with StateError, and the session continues."""
    stage = stage_factory(headend={"enforced": {"widevine"}, "grace": 3.0})
    playback = stage.play(delegate=stage.delegate("widevine", ssm_url=None, **own(stage)))
    v2_stage.licence(playback, "widevine")
    with pytest.raises(usher.StateError):
        v2_stage.licence(playback, "widevine", type=usher.LicenseType.RENEWAL)
    playback.close()
    stage.settle()
    assert stage.routes() == ["setup", "license", "teardown"]


def test_v2_wholeUrls_needNoneForSetup(stage: Stage) -> None:
    """In V2 the licence request sets up the session, so only two complete URLs are needed: for heartbeats and teardown
    (protocol.md: SSP V2)."""
    two = {name: url for name, url in own(stage).items() if name != "setup_url"}
    playback = v2_stage.play(stage, ssm_url=None, **two)
    v2_stage.licence(playback)
    stage.advance(60_000)
    playback.close(T)
    stage.settle()
    assert asked_by(stage) == [("license", ""), ("heartbeat", "heartbeat"), ("teardown", "teardown")]
    for left_out in two:
        with pytest.raises(usher.InvalidArgumentError):
            v2_stage.delegate(stage, ssm_url=None, **{name: url for name, url in two.items() if name != left_out})


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"ssm_api_version": "v7"}, "/TENANT1/ssm/v7/sessions/setup"),
        ({"ssm_append_version": usher.AppendVersion.NEVER}, "/TENANT1/ssm/sessions/setup"),
        (
            {"ssm_append_version": usher.AppendVersion.ALWAYS, "ssm_url": "{ssm}/v1"},
            "/TENANT1/ssm/v1/v1/sessions/setup",
        ),
        ({"ssm_url": "{ssm}/v12"}, "/TENANT1/ssm/v12/sessions/setup"),
        ({"ssm_url": "{ssm}/video"}, "/TENANT1/ssm/video/v1/sessions/setup"),
    ],
    ids=str,
)
def test_version_isTheSegmentThatOptionsSay(stage: Stage, options: dict[str, str], path: str) -> None:
    """The options for the version decide the path of the set-up URL. In this test, the head-end answers 404 to every
    request (protocol.md: The session)."""
    base = f"{stage.headend.tenant_url}/ssm"
    given = {
        "ssm_url": base,
        **{name: value.format(ssm=base) if isinstance(value, str) else value for name, value in options.items()},
    }
    stage.headend.faults.add("*", Fault.status(404), always=True)
    playback = stage.play(delegate=stage.delegate(**given))
    with pytest.raises(usher.HTTPStatusError):
        playback.wait_session()
    stage.settle()
    assert [entry.path for entry in stage.headend.journal] == [path]


@pytest.mark.parametrize("version", ["", "v 1", "v1?", "v1#", "v\n1", "v\u00e9"])
def test_version_thatCannotStandInAPath_isRefused(stage: Stage, version: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        stage.delegate(ssm_api_version=version)


@pytest.mark.parametrize("name", ["setup_url", "heartbeat_url", "teardown_url", "renewal_url"])
@pytest.mark.parametrize("url", ["", "nowhere", "ftp://127.0.0.1/", "http://192.0.2.1/plain"])
def test_wholeUrl_thatIsNone_isRefused(stage: Stage, name: str, url: str) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        stage.delegate(**{**own(stage), name: url})
