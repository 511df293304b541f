"""If a server repeats a secret in its reply, in any spelling, the library removes the secret from every message."""

from __future__ import annotations

import base64
import html
import secrets
import string
from collections.abc import Callable
from itertools import count, cycle
from typing import Any
from urllib.parse import quote

import pytest
from told import Told, letters

import usher
from stage import CHALLENGE, Stage
from usher.testing.headend import Fault

CLEARKEY = usher.KeySystem.CLEARKEY
FORMS = pytest.mark.parametrize("form", ["jwt", "uuid", "letters", "digits"])


def percent(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def groups(size: int, separator: str) -> Callable[[str], str]:
    return lambda text: separator.join(text[at : at + size] for at in range(0, len(text), size))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "upper case": str.upper,
    "percent-coded": percent,
    "twice percent-coded": lambda text: percent(percent(text)),
    "partly percent-coded": lambda text: "".join(percent(c) if at % 3 == 0 else c for at, c in enumerate(text)),
    "JSON escapes": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "HTML": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "groups of 8": groups(8, " "),
    "letter by letter": groups(1, " "),
    "dashes": groups(5, "-"),
    "lines": groups(6, "\r\n"),
    "zero-width spaces": groups(4, "\u200b"),
    "right to left": lambda text: "\u202e" + groups(7, "\u202c")(text),
    "C escapes, octal": lambda text: "".join(f"\\{ord(c):03o}" for c in text),
    "C escapes between": groups(1, "\\v"),
    "HTML, long": lambda text: "".join(f"&#{ord(c):08d};" for c in text),
    "HTML entities between": groups(4, "&shy;"),
    "entities of its own characters": lambda text: html.escape("<".join(text)),
    "full-width, percent-coded": lambda text: quote("".join(chr(ord(c) + 0xFEE0) for c in text)),
    "numbers in hex": lambda text: " ".join(f"0x{byte:02x}" for byte in text.encode()),
    "numbers": lambda text: ", ".join(map(str, text.encode())),
    "base64 of upper case": lambda text: base64.b64encode(text.upper().encode()).decode(),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "full-width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of credentials": lambda text: base64.urlsafe_b64encode(b"me:" + text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "its middle": lambda text: f"…{text[2:14]}…",
    "in a URL": lambda text: f"https://h.example/x?token={quote(text)}&y=1",
}
FIELDS = ("message", "errorMessage", "error", "detail", "title", "nested")


def body(words: str, field: str, code: int = 1003) -> dict[str, Any]:
    known = {"errorCode": code} if code else {}
    return {**known, "error": {"message": words}} if field == "nested" else {**known, field: words}


def check(told: Told, *kept: str) -> None:
    """Checks that the output contains no 8 consecutive letters of a secret, of its base64 form or of its hex form."""
    said = letters("\n".join(told.lines))
    for secret in kept:
        raw = secret.encode()
        for form in (secret, raw.hex(), *(base64.b64encode(raw[skip:]).decode()[:-4] for skip in range(3))):
            spelled = letters(form)
            for at in range(max(len(spelled) - 7, 0)):
                part = spelled[at : at + 8]
                assert part not in said, f"{part} of {secret} in {said[max(said.index(part) - 80, 0) :][:200]}"


@FORMS
def test_secrets_thatAServerSaysBack_inAnySpelling_areNotTold(stage_factory: Callable[..., Stage], form: str) -> None:
    """A licence server repeats every secret in every spelling and in every field. No output has 8 consecutive letters
    of a secret."""
    stage = stage_factory(headend={"token_form": form})
    told, header, numbers, fields = Told(), secrets.token_hex(6), cycle((400, 403, 500, 200)), cycle(FIELDS)
    payload = secrets.token_bytes(48)
    token = stage.headend.content_token(marker=secrets.token_hex(16))
    delegate = stage.delegate(extra_headers=f"x-api-key: {header}")
    playback = stage.play(token, delegate=delegate, tag="a")
    stage.settle()
    stage.advance(250_000)
    session = sorted({part.raw for entry in stage.headend.journal for part in entry.parts} - {token})
    assert len(session) >= 4, "replaced session tokens too"
    newest = stage.headend._service.session_token(stage.headend.sessions.only())
    kept = [token, header, newest, *session]
    for spell in SPELLINGS.values():
        for secret in (*kept, base64.b64encode(payload).decode()):
            words = f"the word '{spell(secret)}' is not known"
            stage.headend.faults.add("license", Fault.reply(next(numbers), body=body(words, next(fields))))
            with pytest.raises(usher.UsherError) as refused:
                playback.get_license(CLEARKEY, payload)
            told.add(refused.value)
    playback.close()
    stage.settle()
    told.add_stage(stage)
    shown = "[redacted]", "withheld"
    assert sum(any(word in line for word in shown) for line in told.lines) > len(SPELLINGS) * len(kept)
    jwts = [secret[40:] if form == "jwt" and secret != header else secret for secret in kept]
    check(told, *jwts, base64.b64encode(payload).decode())


@FORMS
@pytest.mark.parametrize("spelling", ["as it is", "percent-coded", "groups of 8"])
def test_secrets_thatTheSessionServerSaysBack_areNotTold(
    stage_factory: Callable[..., Stage], form: str, spelling: str
) -> None:
    """The SSM repeats content token, old and new session tokens, and a header; no event or log line contains them."""
    stage = stage_factory(headend={"token_form": form})
    told, header, spell = Told(), secrets.token_hex(6), SPELLINGS[spelling]
    token = stage.headend.content_token(marker=secrets.token_hex(16))
    delegate = stage.delegate(extra_headers=f"x-api-key: {header}")
    playback = stage.play(token, delegate=delegate, tag="a")
    stage.settle()
    stage.advance(130_000)
    sent = sorted({part.raw for entry in stage.headend.journal for part in entry.parts} - {token})
    newest = stage.headend._service.session_token(stage.headend.sessions.only())
    brought = secrets.token_hex(6)
    kept = [token, header, newest, brought, *sent]
    number = count()
    for route in ("heartbeat", "teardown", "setup"):
        # This set-up belongs to another playback, whose requests never carried these session tokens.
        spoken = [token, header, brought] if route == "setup" else kept
        for secret in spoken:
            said = {**body(f"'{spell(secret)}' is wrong", FIELDS[next(number) % 6]), "sessionToken": brought}
            stage.headend.faults.add(route, Fault.reply(500, body=said))
        stage.headend.faults.add(
            route,
            Fault.reply(500, body={**body(" ".join(map(spell, spoken)), "detail"), "sessionToken": brought}),
            always=True,
        )
    for number_of_secret in (token, sent[0]):
        if form == "digits":
            coded = {"errorCode": int(number_of_secret), "message": "no"}
            stage.headend.faults.add("license", Fault.reply(400, body=coded))
            with pytest.raises(usher.UsherError) as refused:
                playback.get_license(CLEARKEY, CHALLENGE)
            told.add(refused.value)
    stage.advance(300_000)
    playback.close()
    stage.advance(60_000)
    for _ in kept:
        stage.play(token, delegate=delegate, player=usher.Player(stage.context), tag="b")
        stage.advance(60_000)
    told.add_stage(stage)
    assert {"HEARTBEAT_ERROR", "TEARDOWN_ERROR"} <= set(stage.events.types("a"))
    assert "SETUP_ERROR" in stage.events.types("b")
    check(told, *(secret[40:] if secret.startswith("eyJ") else secret for secret in kept))


@pytest.mark.parametrize("coded", ["100 %41", "a\\x", "&#65;", "&nbsp;", "<b>", "%u0041"])
def test_message_withCodedCharacters_isWithheld(stage: Stage, coded: str) -> None:
    """A server's message has a coded character. The host gets the error code, and instead of the message a note that
    the message was withheld."""
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("license", Fault.error(4000, message=f"it says {coded}"))
    with pytest.raises(usher.RefusedError) as refused:
        playback.get_license(CLEARKEY, CHALLENGE)
    assert refused.value.service_code == 4000
    assert refused.value.message == "the server's message was withheld because it may repeat a secret"


def test_secrets_ofOtherPlaces_areNotTold(stage_factory: Callable[..., Stage]) -> None:
    """A server repeats other secrets: the tokens of other screens, of a closed playback and of an item that a zap
    replaced, words of the payload, parts of the URL, a PIN in a header, and the password of Basic credentials. No
    output has any of them."""
    stage = stage_factory(headend={"token_form": "letters"})
    told, pin, word = Told(), "4711", secrets.token_hex(6)
    basic = base64.b64encode(b"operator:Zq7xW2").decode()
    delegate = stage.delegate(
        license_url=f"{stage.headend.license_url('clearkey')}?Qx7Zk2L",
        extra_headers=f"x-pin: {pin}\nauthorization: Basic {basic}",
    )
    player, tokens = usher.Player(stage.context), [stage.headend.content_token(marker=str(at)) for at in range(4)]
    closed = stage.play(tokens[0], delegate=delegate, player=usher.Player(stage.context))
    stage.settle()
    closed.close()
    stage.play(tokens[1], delegate=delegate, player=usher.Player(stage.context))
    stage.play(tokens[2], delegate=delegate, player=player)
    stage.settle()
    playback = stage.play(tokens[3], delegate=delegate, player=player)
    stage.settle()
    sent = {part.raw for entry in stage.headend.journal for part in entry.parts}
    sessions = {stage.headend._service.session_token(session) for session in stage.headend.sessions.all()}
    assert len(sent | sessions) >= 8 and set(tokens) < sent
    for secret in (*sent, *sessions, word, pin, "Qx7Zk2L", "Zq7xW2"):
        # The characters before and after the secret are digits. If they were letters, they could by chance equal the
        # end or the start of another token in the request, and the library would remove them too.
        stage.headend.faults.add("license", Fault.error(4000, message=f"no word 1 {secret} 1 here"))
        with pytest.raises(usher.RefusedError) as refused:
            playback.get_license(CLEARKEY, b'{"device":"%s"}' % word.encode())
        assert refused.value.message == "no word 1 [redacted] 1 here", secret
        told.add(refused.value)
    stage.settle()
    told.add_stage(stage)
    assert not [line for line in told.lines for secret in (*sent, word) if secret in line]


def test_message_ofAFieldThatServersUse_isTold(stage: Stage) -> None:
    """A server writes its reason into one of the known fields. The error has this text, and no text of other fields."""
    playback = stage.play()
    stage.settle()
    for field in FIELDS:
        said = {**body("The date is wrong.", field, code=0), "trace": "at line 7", "hint": "secret words"}
        stage.headend.faults.add("license", Fault.reply(400, body=said, content_type="application/problem+json"))
        with pytest.raises(usher.HTTPStatusError) as refused:
            playback.get_license(CLEARKEY, CHALLENGE)
        assert refused.value.message == "The date is wrong.", field


@pytest.mark.parametrize("character", ["\x85", "\x9b", "\u202e", "\u2066", "\u2028", "\u2029", "\u200b", "\x1b"])
def test_message_withControlOrBidiCharacters_isOneVisibleLine(stage: Stage, character: str) -> None:
    """A server sends an invisible character in its message. In the error and in the log, the library replaces this
    character by a space."""
    playback = stage.play()
    stage.settle()
    stage.headend.faults.add("license", Fault.error(4000, message=f"a{character}b"))
    with pytest.raises(usher.RefusedError) as refused:
        playback.get_license(CLEARKEY, CHALLENGE)
    stage.settle()
    assert refused.value.message == "a b"
    assert not [line for line in stage.logs if character in line]


def test_wordsOfACustomer_loseItsPayload(stage: Stage) -> None:
    """The host answers with the message of its server, which repeats the challenge. The error does not contain the
    challenge."""
    # The base64 form of this challenge has only letters and digits. If it began or ended with "+" or "/", the library
    # could leave this character in the message, beside "[redacted]".
    payload = base64.b64decode("".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(64)))
    said = f"bad challenge {groups(8, ' ')(base64.b64encode(payload).decode())} \u202e"
    told = Told()

    class Own(usher.CustomerDelegate):
        def license(self, request: usher.CustomerRequest) -> Any:
            return usher.LicenseResponse(http_status=400, service_code=7, message=said)

    playback = stage.play(delegate=Own(stage.context), tag="a")
    with pytest.raises(usher.RefusedError) as refused:
        playback.get_license(CLEARKEY, payload)
    stage.settle()
    assert refused.value.message == "bad challenge [redacted]  "
    told.add(refused.value)
    told.add_stage(stage)
    check(told, base64.b64encode(payload).decode())
