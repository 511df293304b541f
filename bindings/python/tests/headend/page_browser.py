"""Chromium with one tab, for the checks of the head-end's page.

Chromium's debugging port controls the tab, through aiohttp, which the head-end needs anyway.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""The path of Chromium; None if it is not installed (Debian package ``chromium``)."""


def js(text: str) -> str:
    """Returns a string as a JavaScript literal."""
    return json.dumps(text)


class Page:
    """One tab of Chromium, controlled by the Chrome DevTools protocol.

    Attributes:
        complaints: the errors in the browser's console.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []

    async def call(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=20)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        if message["method"] == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.complaints.append(str(params["entry"]["text"]))

    async def run(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression. The browser runs it as if the user had clicked."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = 20) -> None:
        """Waits until a JavaScript expression is true. Evaluates the expression a few times per second."""
        end = asyncio.get_running_loop().time() + seconds
        while not await self.run(f"Boolean({expression})"):
            if asyncio.get_running_loop().time() > end:
                shown = await self.run("document.body.innerText")
                raise TimeoutError(f"not within {seconds} s: {expression}\n{shown}\n{self.complaints}")
            await asyncio.sleep(0.05)

    async def open(self, url: str, width: int = 1440, height: int = 1000, scheme: str = "light") -> None:
        await self.look(width, height, scheme)
        await self.call("Page.navigate", url=url)
        await self.until("document.body?.dataset.link === 'live'")

    async def look(self, width: int, height: int, scheme: str) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def wheel(self, selector: str, pixels: int) -> None:
        """Turns the mouse wheel over the middle of an element. Chromium uses its last frame to choose the element that
        scrolls, and this frame may be older than the document. So this method first takes a picture: for
        the picture, Chromium draws a frame of the document as it is now."""
        await self._take_picture("jpeg", clip={"x": 0, "y": 0, "width": 1, "height": 1, "scale": 1})
        box = f"document.querySelector({js(selector)}).getBoundingClientRect()"
        x, y = await self.run(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({box})")
        await self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=pixels)

    async def press(self, key: str, code: int) -> None:
        """Presses a key, such as ``Tab``, which has the code 9."""
        for kind in ("rawKeyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    async def allow_clipboard(self, origin: str) -> None:
        """Lets pages of this origin read and write the clipboard."""
        kinds = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        await self.call("Browser.grantPermissions", origin=origin, permissions=kinds)

    async def _take_picture(self, kind: str, **options: Any) -> bytes:
        answer = await self.call("Page.captureScreenshot", format=kind, optimizeForSpeed=False, **options)
        return base64.b64decode(answer["data"])

    async def picture(self, file: Path) -> None:
        await asyncio.sleep(1.6)  # the page highlights new rows for a moment
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(await self._take_picture("png"))
        print(f"     {file.name} {file.stat().st_size // 1024} kB")


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Starts Chromium with one empty tab."""
    if PROGRAM is None:
        raise FileNotFoundError("Chromium is not on the PATH (Debian package: chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
        ]
        process = await asyncio.create_subprocess_exec(
            PROGRAM, *options, "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            line = ""
            while "DevTools listening on ws://" not in line:
                line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
                if not line:
                    raise RuntimeError("Chromium ended before it listened")
            host = line.split("ws://")[1].split("/")[0]
            drain = asyncio.create_task(process.stderr.read())
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://{host}/json/list") as reply:
                    (tab, *_) = [target for target in await reply.json(content_type=None) if target["type"] == "page"]
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    for domain in ("Page", "Runtime", "Log"):
                        await page.call(f"{domain}.enable")
                    await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
                    yield page
            drain.cancel()
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


Check = Callable[[Page], Awaitable[None]]

EXPECTED = ("This document requires", "Content Security Policy", "net::ERR")
"""The errors in the browser's console that the checks cause: HTML that the policy refuses, and a head-end that is
gone."""


async def run(check: Check, page: Page) -> None:
    """Runs one check. Then the browser's console must have no error except the expected ones."""
    page.complaints.clear()
    try:
        await check(page)
    finally:
        await page.call("Page.navigate", url="about:blank")
    unexpected = [text for text in page.complaints if not any(mark in text for mark in EXPECTED)]
    assert not unexpected, unexpected


async def until(reached: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Waits until the head-end, which runs in this process, has reached a state."""
    end = asyncio.get_running_loop().time() + seconds
    while not reached():
        assert asyncio.get_running_loop().time() < end, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.01)
