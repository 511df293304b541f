"""Tests the certificate of a resource loader: from bytes, a file or a URL. If a download from the URL fails, the
library tries it again at the next load."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

import usher
from stage import KEY, KID, Stage, StageFactory
from stage.fps import CDM, SKD, failed, loader, play, ready
from usher.testing import fairplay
from usher.testing.headend import Fault
from usher.testing.headend.knobs import Certificate

E = usher.EventType


def der(stage: Stage) -> bytes:
    """Returns the bytes of the certificate as the head-end sends them."""
    import urllib.request

    with urllib.request.urlopen(stage.headend.fps_certificate_url) as answer:
        return bytes(answer.read())


def certificate_of(spc_request: bytes) -> bytes | None:
    return fairplay.read_spc(spc_request).certificate_sha256


@pytest.fixture
def given(stage: Stage, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[dict[str, Any], bytes, int]:
    """Returns the loader options with the certificate, the certificate itself, and the number of requests that the test
    made to get it."""
    certificate = der(stage)
    file = tmp_path / "fairplay ä.cer"
    file.write_bytes(certificate)
    options: dict[str, dict[str, Any]] = {
        "bytes": {"certificate": certificate},
        "file": {"certificate_file": file},
        "url": {"certificate_url": stage.headend.fps_certificate_url},
    }
    return options[request.param], certificate, stage.headend.journal.count("certificate")


@pytest.mark.parametrize("given", ["bytes", "file", "url"], indirect=True)
def test_certificate_howeverGiven_isWhatTheSpcIsMadeOf(stage: Stage, given: tuple[dict[str, Any], bytes, int]) -> None:
    ready(stage)
    options, certificate, _ = given
    cdm = CDM()
    loader(stage, cdm, **options)
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)
    assert cdm.asked[0].certificate == certificate
    assert certificate_of(stage.sent("ckc")[0].body) == hashlib.sha256(certificate).digest()


@pytest.mark.parametrize("given", ["bytes", "file", "url"], indirect=True)
def test_certificate_howeverGiven_isFetchedAtMostOnce(stage: Stage, given: tuple[dict[str, Any], bytes, int]) -> None:
    ready(stage)
    options, _, before = given
    loader(stage, **options)
    playback = play(stage)
    for _ in range(3):
        playback.get_resource(SKD)
    play(stage).get_resource(SKD)
    assert stage.headend.journal.count("certificate") - before == ("certificate_url" in options)


def test_certificate_none_isNoBarrier(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm)
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)
    assert cdm.asked[0].certificate is None
    assert stage.routes() == ["ckc"]


def test_certificate_ofAnotherServer_isRefusedByTheKeyServer(stage: Stage) -> None:
    ready(stage)
    loader(stage, certificate=b"\x30\x82 of somebody else")
    assert isinstance(failed(play(stage)), usher.RefusedError)


def test_certificateFile_isReadWhenTheLoaderIsMade(stage: Stage, tmp_path: Path) -> None:
    ready(stage)
    file = tmp_path / "fairplay.cer"
    file.write_bytes(der(stage))
    cdm = CDM()
    loader(stage, cdm, certificate_file=str(file))
    file.unlink()
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)


@pytest.mark.parametrize("kind", ["missing", "directory", "empty", "too large", "fifo"])
def test_certificateFile_thatCannotBeRead_isRefusedAtOnce(stage: Stage, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "fairplay.cer"
    if kind == "directory":
        file.mkdir()
    elif kind == "empty":
        file.touch()
    elif kind == "too large":
        file.write_bytes(bytes(1024 * 1024 + 1))
    elif kind == "fifo":
        os.mkfifo(file)
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage, certificate_file=file)


def test_certificateFile_ofAMebibyte_isTaken(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "fairplay.cer"
    file.write_bytes(bytes([0x30]) * (1024 * 1024))
    loader(stage, certificate_file=file)


def test_certificate_bytesAndFile_isRefused(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "fairplay.cer"
    file.write_bytes(b"\x30\x82")
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage, certificate=b"\x30\x82", certificate_file=file)


@pytest.mark.parametrize(
    "certificate", [b"", bytes(1024 * 1024 + 1), bytes(10 * 1024 * 1024)], ids=["0 bytes", "1 MiB + 1", "10 MiB"]
)
def test_certificateBytes_ofAnImpossibleSize_areRefused(stage: Stage, certificate: bytes) -> None:
    with pytest.raises(usher.InvalidArgumentError):
        loader(stage, certificate=certificate)


# ---- from a URL ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        (Fault.status(500), usher.HTTPStatusError),
        (Fault.status(404), usher.HTTPStatusError),
        (Fault.empty_body(), usher.ProtocolError),
        (Fault.drop(), usher.TransportError),
        (Fault.redirect("http://127.0.0.1:1/"), usher.RedirectError),
        (Fault.oversized(10_000_000), usher.TooLargeError),
    ],
    ids=lambda value: value.label if isinstance(value, Fault) else value.__name__,
)
def test_certificateUrl_thatFails_failsTheRequestAndIsNotRemembered(
    stage: Stage, fault: Fault, wanted: type[usher.UsherError]
) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, certificate_url=stage.headend.fps_certificate_url)
    stage.headend.faults.add("certificate", fault)
    playback = play(stage)
    error = failed(playback)
    assert type(error) is wanted
    assert (error.origin, error.operation) == (usher.Origin.CERTIFICATE, usher.Operation.CERTIFICATE)
    assert not cdm.asked, "no SPC is made without the certificate"
    assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY)
    playback.get_resource(SKD)
    assert stage.routes() == ["certificate", "certificate", "ckc", "ckc"]


@pytest.mark.parametrize("form", ["der", "base64", "pem", "json"])
def test_certificateUrl_inEveryWrapping_isUnwrapped(stage_factory: StageFactory, form: str) -> None:
    stage = stage_factory(headend={"certificate": Certificate(form=form)})  # type: ignore[arg-type]
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, certificate_url=stage.headend.fps_certificate_url)
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)
    assert cdm.asked[0].certificate is not None
    assert cdm.asked[0].certificate[:1] == b"\x30"


def test_certificateUrl_whileItIsFetched_isWaitedForByAllAndFetchedOnce(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, certificate_url=stage.headend.fps_certificate_url)
    stage.headend.faults.add("certificate", Fault.stall())
    players = [usher.Player(stage.context) for _ in range(3)]
    loads = [play(stage, player=player).load_resource(SKD) for player in players]
    stage.headend.wait_held()
    stage.settle()
    assert stage.routes() == ["certificate"]
    stage.headend.release()
    assert [cdm.opened(load.result(10)) for load in loads] == [(KID, KEY)] * 3
    assert stage.routes() == ["certificate", "ckc", "ckc", "ckc"]
    for player in players:
        player.close()


def test_certificateUrl_thatNeverAnswers_endsAtTheBoundOfARequest(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, certificate_url=stage.headend.fps_certificate_url)
    stage.headend.faults.add("certificate", Fault.stall())
    playback = play(stage)
    load = playback.load_resource(SKD)
    stage.headend.wait_held()
    stage.advance(10_000)
    with pytest.raises(usher.UsherTimeoutError):
        load.result(10)
    assert cdm.opened(playback.get_resource(SKD)) == (KID, KEY), "the next load fetches the certificate again"


def test_certificateUrl_ofAClosedPlayback_isKeptForTheNext(stage: Stage) -> None:
    ready(stage)
    cdm = CDM()
    loader(stage, cdm, certificate_url=stage.headend.fps_certificate_url)
    stage.headend.faults.add("certificate", Fault.stall())
    playback = play(stage)
    load = playback.load_resource(SKD)
    stage.headend.wait_held()
    playback.close()
    with pytest.raises(usher.ClosedError):
        load.result(10)
    stage.headend.release()
    stage.settle()
    assert not cdm.asked
    assert cdm.opened(play(stage).get_resource(SKD)) == (KID, KEY)
    assert stage.routes() == ["certificate", "ckc"]


def test_certificateUrl_ofTwoLoaders_isFetchedByEach(stage: Stage) -> None:
    ready(stage)
    first = loader(stage, certificate_url=stage.headend.fps_certificate_url)
    playback = play(stage)
    playback.get_resource(SKD)
    first.close()
    loader(stage, certificate_url=stage.headend.fps_certificate_url)
    playback.get_resource(SKD)
    assert stage.routes() == ["certificate", "ckc", "certificate", "ckc"]
