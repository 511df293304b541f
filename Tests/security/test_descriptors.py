"""Tests the library's file descriptors: a program that the host starts inherits none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import usher
from usher.testing.headend import HeadEnd

SCRIPT = """
import subprocess, sys, usher
license_url, ssm_url, token, ca_file = sys.argv[1:]
with usher.Context(proxy="", ca_file=ca_file or None) as context, usher.Player(context) as player:
    delegate = usher.SSPDelegate(context, license_url=license_url, ssm_url=ssm_url)
    with player.play(token, delegate=delegate) as playback:
        playback.wait_session()
        child = subprocess.run(["ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, text=True)
        print(child.stdout)
"""


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_childOfTheHost_inheritsNoSocket(tls: bool) -> None:
    """A program that the host starts inherits no descriptor of the library while a session plays."""
    with HeadEnd(tls=tls) as headend:
        arguments = [
            headend.license_url("clearkey"),
            headend.ssm_url,
            headend.content_token(),
            str(headend.ca_file or ""),
        ]
        environment = {**os.environ, "PYTHONPATH": str(Path(usher.__file__).parents[1])}
        host = subprocess.run(
            [sys.executable, "-c", SCRIPT, *arguments], env=environment, capture_output=True, text=True, timeout=60
        )
        assert host.returncode == 0, host.stderr
        lines = [line for line in host.stdout.splitlines() if " -> " in line]
        assert len(lines) >= 3, host.stdout
        inherited = [line for line in lines if "socket:" in line or "anon_inode:" in line]
        assert not inherited, inherited
        assert len(headend.journal.entries(route="setup")) == 1
