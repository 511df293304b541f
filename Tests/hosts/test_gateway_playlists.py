"""Tests which playlists `usher gateway` reads, and what it makes of them: redirects, long, slow and live playlists."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from hosts.conftest import Clip
from hosts.gateway import Start, ask, key_url, make_hls

from usher.testing.doors import Door
from usher.testing.headend import HeadEnd
from usher.testing.headend.fixtures import Authority


def test_gatewayPlaylist_isRewritten(start: Start, tmp_path: Path, clips: dict[str, Clip]) -> None:
    """The gateway rewrites a playlist: it changes the URIs, except those of the keys of DRM systems, and changes no
    other byte."""
    key_id = clips["progressive"].content.keys[0].kid.hex()
    text = (
        "#EXTM3U\r\n#EXT-X-VERSION:7\r\n"
        f'#EXT-X-KEY:METHOD=AES-128,URI="k?a=1,URI=2",KEYID=0x{key_id},IV=0x00\r\n'
        '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://asset",KEYFORMAT="com.apple.streamingkeydelivery"\n'
        "#EXT-X-KEY:METHOD=NONE\n"
        '#EXT-X-MAP:URI="init.mp4",BYTERANGE="10@0"\n#EXTINF:1,the URI="x"\nsub/a b.ts?x#y\n\n'
        "#EXTINF:1,\nsub/a b.ts?x#y"
    )
    (tmp_path / "film.m3u8").write_text(text, newline="")
    url = start(tmp_path / "film.m3u8").url()
    prefix = "/" + urlsplit(url).path.split("/")[1]
    expected = (
        text.replace("k?a=1,URI=2", f"{prefix}/1/key")
        .replace("init.mp4", f"{prefix}/2/init.mp4")
        .replace("sub/a b.ts?x#y", f"{prefix}/3/a%20b.ts")
    )
    assert ask(url).body.decode() == expected


def test_gatewayKeyId_isMissing(server: HeadEnd, start: Start, clips: dict[str, Clip], tmp_path: Path) -> None:
    """A playlist names no key id; the message of the gateway names --key-id, and with this option the player gets the
    key."""
    clip = clips["preview"]
    film = make_hls(tmp_path / "hls", clip, "key.bin")
    reply = ask(key_url(start(film).url()))
    assert reply.status == 502
    assert "--key-id" in reply.text
    content_id, key = clip.content.content_id, clip.content.keys[0]
    gateway = start(film, content_id=content_id, key_id=key.kid.hex())
    assert ask(key_url(gateway.url())).body == key.key
    assert server.sessions.all()


def test_gatewayRange_isServed(start: Start, film: Path) -> None:
    """A player requests byte ranges of a segment; the gateway sends exactly these."""
    gateway = start(film)
    key_url(gateway.url())
    url, whole = gateway.url().rsplit("/", 2)[0] + "/2/film0.ts", (film.parent / "film0.ts").read_bytes()
    assert ask(url).body == whole
    assert ask(url, "HEAD").headers["Content-Length"] == str(len(whole))
    for text, part in (("5-9", whole[5:10]), ("10-", whole[10:]), ("-7", whole[-7:]), ("0-0", whole[:1])):
        reply = ask(url, Range=f"bytes={text}")
        assert (reply.status, reply.body) == (206, part), text
    assert ask(url, Range=f"bytes={len(whole)}-").status == 416


class Plain(http.server.BaseHTTPRequestHandler):
    """A web server without byte ranges. It redirects /old/… to /new/…. A reply to /slow/… never ends: the server sends
    a line of it every 50 ms."""

    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        folder, name = urlsplit(self.path).path.split("/")[1:3]
        self.send_response(301 if folder == "old" else 200 if name in self.files else 404)
        if folder == "old":
            self.send_header("Location", f"/new/{name}")
        if folder != "slow":
            self.send_header("Content-Length", str(len(self.files.get(name, b""))))
        self.end_headers()
        if folder == "new":
            self.wfile.write(self.files.get(name, b""))
        with contextlib.suppress(ConnectionError):
            while folder == "slow":
                self.wfile.write(b"#EXTM3U\n")
                time.sleep(0.05)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def plain(film: Path) -> Iterator[str]:
    """The URL of a web server of the class Plain, which has the film."""
    files = {file.name: file.read_bytes() for file in film.parent.iterdir()}
    handler = type("Film", (Plain,), {"files": files})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.quick
def test_gatewayRedirect_isFollowed(start: Start, plain: str, film: Path) -> None:
    """A playlist comes from a server that redirects and has no byte ranges; the gateway resolves the URIs of the
    playlist against the URL after the redirects, and sends whole segments."""
    gateway = start(f"{plain}/old/film.m3u8?token=a/secret")
    assert "secret" not in gateway.url()
    lines = [line for line in ask(gateway.url()).text.splitlines() if line.startswith("/")]
    origin = gateway.url()[: gateway.url().index("/", 8)]
    reply = ask(origin + lines[0], Range="bytes=5-9")
    assert (reply.status, reply.body) == (200, (film.parent / "film0.ts").read_bytes())


@pytest.mark.quick
def test_gatewayPlaylist_ofTheWebNamesFiles(start: Start, web: Callable[[Path], str], tmp_path: Path) -> None:
    """A playlist of a web server names a local file; the gateway does not read this file."""
    (tmp_path / "secret").write_text("secret")
    names = [f"file://{tmp_path}/secret", "file:secret", "http:secret", "httpx://a/secret", "concat:secret"]
    film = tmp_path / "film.m3u8"
    film.write_text("\n".join(["#EXTM3U", *names, "//127.0.0.1:1/a.ts", "b.ts"]) + "\n")
    gateway = start(web(film), shell=f'cd "{tmp_path}" && touch http:secret && exec "$@"')
    url = gateway.url()
    prefix = "/" + urlsplit(url).path.split("/")[1]
    assert ask(url).text.splitlines()[1:] == [*names, f"{prefix}/1/a.ts", f"{prefix}/2/b.ts"]
    reply = ask(url.rsplit("/", 2)[0] + "/1/a.ts")
    assert (reply.status, reply.text) == (502, "http://127.0.0.1:1/a.ts: Connection refused\n")


@pytest.mark.quick
def test_gatewayWords_areSafe(start: Start, tmp_path: Path) -> None:
    """When the gateway prints a URL, it leaves out the query and the user name, which may be secret, and control
    characters."""
    (tmp_path / "film.m3u8").write_text("#EXTM3U\nhttp://me:pass@127.0.0.1:1/\x1b]0;a\x07\x9b\u009b.ts?token=secret\n")
    gateway = start(tmp_path / "film.m3u8")
    assert ask(gateway.url()).status == 200
    reply = ask(gateway.url().rsplit("/", 2)[0] + "/1/x")
    assert reply.status == 502
    assert "http://127.0.0.1:1/?]0;a?" in gateway.errors
    assert ".ts: Connection refused" in gateway.errors
    for word in ("secret", "pass", "\x1b", "\x07", "\x9b"):
        assert word not in gateway.errors
    assert "secret" not in reply.text
    (tmp_path / "film.m3u8").write_text('#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="key?token=secret&to=https://a/b"\n')
    reply = ask(key_url(gateway.url()))
    assert (reply.status, "secret" in reply.text) == (502, False)
    assert "for its key key: use --key-id" in reply.text


def test_gatewayPlaylist_isSlow(start: Start, plain: str, tmp_path: Path) -> None:
    """A playlist does not end within --timeout; the gateway stops reading it, and the player gets a message."""
    (tmp_path / "film.m3u8").write_text(f"#EXTM3U\n{plain}/slow/film.m3u8\n")
    gateway = start(tmp_path / "film.m3u8", timeout=1)
    assert ask(gateway.url()).status == 200
    reply = ask(gateway.url().rsplit("/", 2)[0] + "/1/film.m3u8")
    assert (reply.status, reply.text) == (502, "The playlist is too long, or cannot be read.\n")


def test_gatewayPlaylist_isTooLong(start: Start, tmp_path: Path) -> None:
    """A playlist has no end or names too many URIs; the gateway refuses it with a message."""
    for name, text, words in (
        ("long", "#EXTM3U\n" + "#\n" * (3 << 20), "too long"),
        ("much", "#EXTM3U\n" + "".join(f"{n}\n" for n in range(60000)), "names too much"),
    ):
        (tmp_path / f"{name}.m3u8").write_text(text)
        reply = ask(start(tmp_path / f"{name}.m3u8").url())
        assert reply.status == 502
        assert words in reply.text


def test_gatewayPlaylist_thatIsRefused_replacesNoOtherEntries(start: Start, tmp_path: Path) -> None:
    """A player asks again and again for a playlist that names too many URIs. The gateway refuses it each time; the
    segments of the other playlist stay valid."""
    (tmp_path / "good.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nsegment.ts\n")
    (tmp_path / "segment.ts").write_bytes(b"segment")
    (tmp_path / "much.m3u8").write_text("#EXTM3U\n" + "".join(f"{n}\n" for n in range(60000)))
    (tmp_path / "main.m3u8").write_text("#EXTM3U\ngood.m3u8\nmuch.m3u8\n")
    gateway = start(tmp_path / "main.m3u8")
    origin = gateway.url()[: gateway.url().index("/", 8)]
    good, much = ask(gateway.url()).text.splitlines()[1:]
    segment = ask(origin + good).text.splitlines()[-1]
    for _ in range(4):
        assert ask(origin + much).status == 502
    assert ask(origin + segment).body == b"segment"


def test_gatewayPlaylist_isLive(server: HeadEnd, start: Start, film: Path, tmp_path: Path) -> None:
    """A live stream names new segments for days; the URLs of the newest segments and of the key stay valid, those of
    old segments do not."""
    key_line = next(line for line in film.read_text().splitlines() if line.startswith("#EXT-X-KEY"))
    live = tmp_path / "live.m3u8"
    (tmp_path / "main.m3u8").write_text("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlive.m3u8\n")
    gateway = start(tmp_path / "main.m3u8")
    main = ask(gateway.url()).text.splitlines()[-1]
    origin = gateway.url()[: gateway.url().index("/", 8)]
    first = ""
    for turn in range(6):
        names = "".join(f"#EXTINF:1,\nfilm0.ts?turn={turn}&n={number}\n" for number in range(40000))
        live.write_text(f"#EXTM3U\n{key_line}\n{names}")
        lines = ask(origin + main).text.splitlines()
        first = first or lines[3]
        (tmp_path / f"film0.ts?turn={turn}&n=0").write_bytes(b"segment")
        assert ask(origin + lines[3]).body == b"segment", turn
        key = lines[1].split('URI="')[1].split('"')[0]
        assert len(ask(origin + key).body) == 16, turn
    assert ask(origin + first).status == 404
    assert server.journal.routes().count("license") == 1


@pytest.mark.quick
def test_gatewayCertificate_isVerified(start: Start, web: Callable[[Path], str], film: Path) -> None:
    """A clip is on an https server; the gateway reads the clip only if the server's certificate is trusted."""
    authority = Authority()
    url = web(film)
    for context, options, plays in (
        (authority.server_context(), {}, False),
        (authority.wrong_name(), {"ca_file": authority.ca_file}, False),
        (authority.server_context(), {"ca_file": authority.ca_file}, True),
    ):
        with Door(url, tls=context) as door:
            gateway = start(door.url(url), **options)
            if plays:
                assert "#EXT-X-KEY" in ask(gateway.url()).text
            else:
                assert gateway.wait() == 3
                assert "usher: https://127.0.0.1:" in gateway.errors
