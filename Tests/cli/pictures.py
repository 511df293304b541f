"""Makes the pictures of docs/cli.md and docs/load.md: usher watch and usher check in a terminal, as SVG, and the report
of usher load, as PNG.

    USHER_LIBRARY=build/shipped/libusher.so .venv/bin/python Tests/cli/pictures.py [FOLDER]

writes FOLDER/usher-watch.svg, FOLDER/usher-check.svg and FOLDER/usher-load.png (default: docs/images). The commands
really run: watch shows a head-end with three players, check finds the ten faults of Tests/cli/wrong_server.py, load
plays on 100 screens for half a minute, and Chromium shows its report.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in ("Tests", "bindings/python/src"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))

from cli import wrong_server  # noqa: E402
from cli.wrong_server import WrongServer  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.terminal_theme import TerminalTheme  # noqa: E402

from usher.cli.main import parser  # noqa: E402
from usher.cli.output import Output  # noqa: E402
from usher.cli.registry import COMMANDS  # noqa: E402
from usher.cli.wire.client import Client  # noqa: E402
from usher.testing.headend import Fault, HeadEnd  # noqa: E402

COLUMNS = 108
THEME = TerminalTheme(
    (22, 27, 34),
    (215, 220, 226),
    [
        *((72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65)),
        *((121, 192, 255), (210, 168, 255), (86, 212, 221), (215, 220, 226)),
    ],
)


def picture(title: str, *arguments: str) -> str:
    """Runs a command. Returns what it prints, as SVG without fonts from the network."""
    out = Output(color="always")
    console = Console(
        record=True, file=io.StringIO(), width=COLUMNS, force_terminal=True, highlight=False, emoji=False, markup=False
    )
    out.__dict__["console"] = console
    command = next(each for each in COMMANDS if each.name == arguments[0])
    command.module().run(parser([command.name]).parse_args(list(arguments)), out)
    svg = console.export_svg(title=title, theme=THEME)
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.S)
    return svg.replace("Fira Code", "DejaVu Sans Mono")


def watch() -> str:
    with HeadEnd(clock="manual", limit=2, period_s=60) as headend:

        def ask(call: str, token: str) -> str:
            url = f"{headend.ssm_url}/v1/sessions/{call}"
            return str(Client().send("POST", url, (("nv-authorizations", token),), b"{}").member("sessionToken"))

        television = ask("setup", headend.content_token("smith-family", "film-1", device="tv"))
        phone = ask("setup", headend.content_token("jones-family", "match", device="phone"))
        headend.advance(58_000)
        television = ask("heartbeat", television)
        headend.faults.add("heartbeat", Fault.status(503), account="jones-family")
        ask("heartbeat", phone)
        headend.advance(21_000)
        ask("setup", headend.content_token("smith-family", "film-2", device="tablet"))
        ask("setup", headend.content_token("smith-family", "film-2", device="phone"))
        headend.advance(4_000)
        return picture("usher watch", "watch", headend.url, "--once")


def check() -> str:
    with WrongServer() as server, tempfile.TemporaryDirectory() as folder:
        token = Path(folder, "token.txt")
        token.write_text(wrong_server.CONTENT_TOKEN)
        asked = ["check", server.url, "--token-file", str(token), "--limit", "2", "--seed", "1", "--stories", "0"]
        return picture("usher check", *asked, "--quiet")


def load(picture_file: Path) -> None:
    with HeadEnd(period_s=5) as headend, tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.html")
        words = [
            "load",
            headend.tenant_url,
            "--screens",
            "100",
            "--rate",
            "10",
            "--seconds",
            "30",
            "--html",
            str(report),
        ]
        subprocess.run([sys.executable, "-m", "usher.cli", *words, "--json"], stdout=subprocess.DEVNULL, check=True)
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        browser += ["--window-size=1100,1680", "--virtual-time-budget=8000", f"--user-data-dir={folder}/profile"]
        browser += [f"--screenshot={picture_file}", report.as_uri()]
        subprocess.run(browser, check=True, capture_output=True, timeout=120)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    for name, make in (("usher-watch", watch), ("usher-check", check)):
        (folder / f"{name}.svg").write_text(make(), encoding="utf-8")
    load((folder / "usher-load.png").resolve())


if __name__ == "__main__":
    main()
