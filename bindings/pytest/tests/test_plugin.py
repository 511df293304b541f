"""Tests the plugin on small suites: fixtures, markers, options, reports, and another head-end."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from usher.testing.headend import HeadEnd

OPTIONS = ("-p", "no:cacheprovider", "--strict-markers")


def run(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    """Runs a suite of one module in this process, and returns the result of pytest."""
    pytester.makepyfile(textwrap.dedent(text))
    return pytester.runpytest_inprocess(*OPTIONS, *arguments)


def test_headend_byDefault_hasAManualClockAndStrictTokens(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(headend):
            assert headend.running and headend.manual and headend.config.token_rotation == "strict"
        """,
    )
    result.assert_outcomes(passed=1)


def test_failingTest_report_hasTheJournalsOfItsHeadEnds(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import urllib.request

        def test_fails(headend_factory):
            he = headend_factory(limit=7, clock="system")
            urllib.request.urlopen(he.certificate_url("fairplay")).read()
            assert he.config.limit == 8
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*head-end journal http://127.0.0.1:*", "*certificate fairplay*"])


@pytest.mark.parametrize(("when", "shown"), [("always", True), ("never", False)])
def test_journalOption_passingTest_decidesWhetherTheReportHasIt(
    pytester: pytest.Pytester, when: str, shown: bool
) -> None:
    result = run(
        pytester,
        "def test_it(headend): headend.content_token()\ndef test_no(headend): assert 0",
        f"--usher-journal={when}",
        "-rA",
    )
    result.assert_outcomes(passed=1, failed=1)
    assert ("head-end journal" in result.stdout.str()) is shown


def test_markers_headendContextFaults_reachTheirObjects(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest
        import usher

        pytestmark = pytest.mark.usher_headend(limit=5, period_s=10)

        @pytest.mark.usher_headend(limit=1)
        @pytest.mark.usher_context(max_response_bytes=64)
        @pytest.mark.usher_faults("setup", "EMPTY_RESPONSE", times=3)
        def test_marked(stage):
            assert (stage.headend.config.limit, stage.headend.config.period_s) == (1, 10)
            assert stage.headend.faults.pending == 3
            with pytest.raises(usher.TransportError):
                stage.call(stage.play().wait_session).result()

        def test_module(headend):
            assert (headend.config.limit, headend.faults.pending) == (5, 0)
        """,
    )
    result.assert_outcomes(passed=2)


def test_settingsFixture_overriddenInConftest_isTheDefault(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef headend_settings(): return {'limit': 4, 'token_rotation': 'none'}"
    )
    result = run(
        pytester,
        """
        def test_it(stage, headend_factory):
            assert (stage.headend.config.limit, stage.headend.config.token_rotation) == (4, "none")
            assert headend_factory(limit=6).config.limit == 6
        """,
    )
    result.assert_outcomes(passed=1)


def test_unknownSetting_ofAMarker_isAnErrorThatNamesIt(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        "import pytest\n@pytest.mark.usher_headend(limits=1)\ndef test_it(headend): pass",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TypeError: *limits*"])


def test_stage_anHour_advancesBothClocks(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(stage):
            stage.play()
            start = stage.headend.now_ms
            stage.advance(3_600_000)
            assert stage.headend.now_ms == start + 3_600_000
            stage.expect.heartbeats(60, every_ms=60_000)
        """,
    )
    result.assert_outcomes(passed=1)


def test_stageLeftWithASession_isAnErrorAtTheEnd_unlessMarked(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        def lose_the_reply(stage):
            stage.headend.faults.add("setup", {"kind": "drop", "when": "after"})
            stage.play()
            stage.settle()

        def test_it(stage):
            lose_the_reply(stage)

        @pytest.mark.usher_leaves_session("the reply with its token is lost")
        def test_marked(stage):
            lose_the_reply(stage)

        @pytest.mark.usher_leaves_session("on purpose")
        def test_marked_butLeavesNone(stage):
            pass
        """,
    )
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(["*sessions left at the head-end*"])
    result.stdout.fnmatch_lines(["*the head-end holds no session any more*"])


def test_callbackThatRaises_isAnErrorAtTheEnd(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        def raising(request):
            raise KeyError("no account")

        def test_it(stage):
            stage.player.play(delegate=stage.delegate(token_callback=raising))
            stage.settle()

        @pytest.mark.usher_callback_errors("on purpose")
        def test_marked(stage):
            test_it(stage)
        """,
    )
    result.assert_outcomes(passed=2, errors=1)


def test_tlsOption_everyHeadEnd_isTrustedByTheStage(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(stage):
            assert stage.headend.url.startswith("https://")
            stage.play()
            stage.settle()
            stage.expect.routes("setup")
        """,
        "--usher-tls",
    )
    result.assert_outcomes(passed=1)


def test_doorFactory_expiredCertificate_isATlsError(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import usher
        from usher.testing.headend.fixtures import Authority

        def test_it(stage_factory, headend, door_factory):
            authority = Authority("127.0.0.1")
            door = door_factory(headend.url, tls=authority.expired())
            stage = stage_factory(headend, ca_file=authority.ca_file)
            delegate = stage.delegate(ssm_url=door.url(headend.ssm_url))
            stage.play(delegate=delegate)
            stage.settle()
            assert isinstance(stage.events.error(usher.EventType.SETUP_ERROR), usher.TLSError)
            stage.expect.routes()
        """,
    )
    result.assert_outcomes(passed=1)


FOREIGN = """
    import pytest
    import usher

    def test_urlsAndTokens(stage):
        with stage.play() as playback:
            playback.wait_session()

    @pytest.mark.usher_headend(limit=1)
    def test_secondScreen(stage):
        stage.play(screen="a").wait_session()
        with pytest.raises(usher.LimitError):
            stage.play(screen="b").wait_session()

    def test_journal(stage):
        stage.expect.routes()

    def test_time(stage):
        stage.advance(1000)

    @pytest.mark.usher_faults("setup", "EMPTY_RESPONSE")
    def test_faults(stage):
        raise AssertionError("must not run")

    @pytest.mark.usher_headend(period_s=10)
    def test_settings(headend):
        raise AssertionError("must not run")
    """


def test_anotherHeadEnd_testsThatNeedTheOracle_areSkippedWithTheReason(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    with HeadEnd(limit=1, control=False) as other:
        file = tmp_path / "token"
        file.write_text(other.content_token() + "\n", encoding="utf-8")  # editors end a file with a line end
        where = (f"--usher-headend-url={other.ssm_url}/", f"--usher-license-url={other.license_url('clearkey')}")
        result = run(pytester, FOREIGN, *where, f"--usher-token-file={file}", "--usher-limit=1", "-rs")
        result.assert_outcomes(passed=2, skipped=4)
        result.stdout.fnmatch_lines([f"usher: the head-end at {other.ssm_url}"])
        result.stdout.fnmatch_lines_random(
            [
                "*needs journal of the reference head-end; * is another head-end: only its URLs and tokens are known",
                "*needs virtual time; * is another head-end, so time is real",
                "*needs faults of the reference head-end; *",
                "*needs period_s of the reference head-end; * is another head-end: its settings cannot be chosen",
            ]
        )
        assert len(other.sessions.active()) == 0
        assert other.content_token() not in result.stdout.str()


def test_anotherHeadEnd_unknownLimit_skipsTheTestOfTheLimit(pytester: pytest.Pytester) -> None:
    with HeadEnd(limit=1) as other:
        result = run(
            pytester,
            FOREIGN,
            f"--usher-headend-url={other.ssm_url}",
            "--usher-token-command=echo any",
            "-rs",
            "-k",
            "secondScreen",
        )
    result.assert_outcomes(skipped=1, deselected=5)
    result.stdout.fnmatch_lines(["*its limit is unknown; --usher-limit states it"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--usher-token=T"], "--usher-token needs --usher-headend-url"),
        (["--usher-headend-url=https://x.example", "--usher-tls"], "begin --usher-headend-url with https:"),
        (["--usher-headend-url=https://x.example", "--usher-token-file=missing"], "--usher-token-file: *missing*"),
        (
            ["--usher-headend-url=https://x.example", "--usher-token=T", "--usher-token-file=x"],
            "--usher-token and --usher-token-file contradict each other",
        ),
    ],
)
def test_options_thatContradict_areAUsageError(pytester: pytest.Pytester, arguments: list[str], words: str) -> None:
    result = run(pytester, "def test_it(): pass", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{words}*"])


def test_tokenFile_withoutAToken_isAUsageError(pytester: pytest.Pytester, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n\n", encoding="utf-8")
    options = ["--usher-headend-url=https://x.example", f"--usher-token-file={tmp_path / 'empty'}"]
    result = run(pytester, "def test_it(): pass", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*does not have one line with a token*"])


def test_help_groupsTheOptions(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*OPTIONS, "--help")
    result.stdout.fnmatch_lines(["head-ends and sessions (pytest-usher):", "*--usher-headend-url=URL*"])


def test_markers_areListed(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*OPTIONS, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.usher_headend(?*settings): *", "@pytest.mark.usher_breaks_rules*"])


def test_suiteWithoutTheFixtures_loadsNeitherHeadEndNorLibrary(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\ndef test_it():\n    assert not {'aiohttp', 'usher.context', 'usher._c.ffi'} & set(sys.modules)"
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=1)
