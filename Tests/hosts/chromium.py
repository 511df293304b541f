"""Runs Chromium without a screen. It opens the page that has a player, and other pages."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import queue
import select
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from hosts.scene import PATIENCE_S, until

HTML = "text/html; charset=utf-8"
PAGE = Path(__file__).with_name("eme.html")


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns two pairs of descriptors: this process reads and writes with the first pair, the browser with the second
    one. Chromium expects its descriptors at the numbers 3 and 4. A shell duplicates them to these numbers, so the
    descriptors themselves are above 9."""
    from_us, to_us = os.pipe(), os.pipe()
    theirs = (fcntl.fcntl(from_us[0], fcntl.F_DUPFD, 10), fcntl.fcntl(to_us[1], fcntl.F_DUPFD, 10))
    os.close(from_us[0])
    os.close(to_us[1])
    return (to_us[0], from_us[1]), theirs


class Chromium:
    """A web server with the page and the clips, and the browsers that opened the page.

    Attributes:
        origin: the origin of the page.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._reports = folder, queue.Queue[dict[str, Any]]()
        self._files = {"/": PAGE}
        self._started: list[subprocess.Popen[bytes]] = []
        self._ours: list[tuple[int, int]] = []
        self._number = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                file = outer._files.get(urlsplit(self.path).path)
                self.send_response(200 if file else 404)
                self.send_header("Content-Type", "video/mp4" if file and file.suffix == ".mp4" else HTML)
                self.end_headers()
                self.wfile.write(file.read_bytes() if file else b"")

            def do_POST(self) -> None:
                outer._reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def fragmented(self, clip: Path) -> Path:
        """Returns a fragmented MP4 file, which pages can append, with the pictures and the time stamps of a clear
        clip."""
        target = self._folder / "fragmented.mp4"
        words = [
            "-map",
            "0:v",
            "-c",
            "copy",
            "-movflags",
            "frag_keyframe+empty_moov+default_base_moof+negative_cts_offsets",
        ]
        command = ["ffmpeg", "-v", "error", "-i", str(clip), *words, str(target)]
        subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True)
        return target

    def open(self, clip: Path, codec: str, gateway: str = "") -> None:
        """Opens the page. `gateway`: the gateway's URL without the last part; "": the clip is clear."""
        name = f"/{len(self._started)}.mp4"
        self._files[name] = clip
        query = f"clip={name}&codec={quote(codec)}" + (f"&gateway={quote(gateway, safe='')}" if gateway else "")
        self.visit(f"{self.origin}/?{query}")

    def open_page(self, file: Path) -> None:
        """Opens an HTML file, and waits until the browser has loaded it."""
        name = f"/{len(self._started)}.html"
        self._files[name] = file
        self.visit(f"{self.origin}{name}")
        until(lambda: self.evaluate(f"location.pathname == '{name}' && document.readyState == 'complete'"), name)

    def visit(self, url: str) -> None:
        """Opens a URL in a new browser."""
        number = len(self._started)
        ours, theirs = _pipes()
        words = [
            "--headless",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--no-first-run",
            "--autoplay-policy=no-user-gesture-required",
        ]
        if os.geteuid() == 0:
            words.append("--no-sandbox")
        log = self._folder / f"chromium-{number}.log"
        profile = f"--user-data-dir={self._folder / f'profile-{number}'}"
        with log.open("wb") as out:
            shell = ["bash", "-c", f'exec 3<&{theirs[0]} 4>&{theirs[1]}; exec "$@"', "bash"]
            command = [*shell, "chromium", *words, profile, url]
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=theirs,
            )
        for descriptor in theirs:
            os.close(descriptor)
        self._ours.append(ours)
        self._started.append(process)

    def next_report(self) -> dict[str, Any]:
        """Waits for the next report of a page, and returns it."""
        try:
            return self._reports.get(timeout=3 * PATIENCE_S)
        except queue.Empty:
            logs = "".join(file.read_text(errors="replace") for file in self._folder.glob("chromium-*.log"))
            raise AssertionError(f"the page does not report: {logs[-2000:]}") from None

    def play(self, clip: Path, codec: str, gateway: str = "") -> dict[str, Any]:
        """Opens the page, waits for its first report, and returns this report."""
        self.open(clip, codec, gateway)
        return self.next_report()

    def pictures(self, times: list[float], width: int, height: int) -> list[str]:
        """Takes screenshots of the newest browser. Returns the hash of the picture at each time."""
        session = self._attach()
        area = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        found = []
        for time in times:
            self._evaluate(f"seek({time})", session)
            picture = self._call("Page.captureScreenshot", {"format": "png", "clip": area}, session)["data"]
            found.append(hashlib.sha256(base64.b64decode(picture)).hexdigest())
        return found

    def words(self) -> str:
        """Returns what the viewer reads in the newest browser."""
        found: str = self.evaluate("document.getElementById('words')?.innerText ?? ''")
        return found

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression in the page of the newest browser."""
        return self._evaluate(expression, self._attach())

    def screenshot(self, file: Path, width: int = 854, height: int = 480) -> None:
        """Writes what the newest browser shows in a window of this size as a PNG file."""
        session = self._attach()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", size, session)
        data = self._call("Page.captureScreenshot", {"format": "png"}, session)["data"]
        file.write_bytes(base64.b64decode(data))

    def adopt(self, read: int, write: int) -> None:
        """From now on, the newest browser is one that another process has started. `read` and `write` are the
        descriptors of this browser's debugging pipe."""
        self._ours.append((read, write))

    def close_tab(self) -> None:
        """Closes the page in the newest browser."""
        self._call("Target.closeTarget", {"targetId": self._target()})

    def quit(self) -> None:
        """Ends the newest browser as the viewer does."""
        self._call("Browser.close", {})

    def kill(self) -> None:
        """Kills the processes of the newest browser."""
        os.killpg(self._started[-1].pid, signal.SIGKILL)
        self._started[-1].wait()

    def _target(self) -> str:
        def find() -> list[str]:
            targets = self._call("Target.getTargets", {})["targetInfos"]
            return [one["targetId"] for one in targets if one["url"].startswith("http://127.0.0.1:")]

        found: list[str] = until(find, "Chromium opens the page")
        return found[0]

    def _attach(self) -> str:
        """Returns a session of the DevTools Protocol with the page in the newest browser."""
        found: str = self._call("Target.attachToTarget", {"targetId": self._target(), "flatten": True})["sessionId"]
        return found

    def _evaluate(self, expression: str, session: str) -> Any:
        """Returns the value of an expression in the page."""
        arguments = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        return self._call("Runtime.evaluate", arguments, session)["result"].get("value")

    def _call(self, method: str, arguments: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        """Calls a method of the Chrome DevTools Protocol, and returns its result. Request and reply are JSON with a NUL
        at the end."""
        read, write = self._ours[-1]
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": arguments}
        if session:
            message["sessionId"] = session
        os.write(write, json.dumps(message).encode() + b"\0")
        got = b""
        while True:
            assert select.select([read], [], [], PATIENCE_S)[0], f"Chromium does not reply to {method}"
            block = os.read(read, 1 << 20)
            assert block, "Chromium has ended"
            *lines, got = (got + block).split(b"\0")
            for line in lines:
                reply = json.loads(line)
                if reply.get("id") == self._number:
                    assert "result" in reply, reply
                    result: dict[str, Any] = reply["result"]
                    return result

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pair in self._ours:
            for descriptor in pair:
                os.close(descriptor)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
