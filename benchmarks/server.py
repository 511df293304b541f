"""nginx on loopback with canned SSM replies: the same server for peers and ours."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType

ECHO_MODULE = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")
TOKEN = "benchmark.token." + "t" * 600 + ".$request_id"  # of the size of a signed session token, and a new one each time

CONFIGURATION = """
load_module {echo_module};
daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
error_log {folder}/error.log warn;
pid {folder}/nginx.pid;
events {{ worker_connections {connections}; }}
http {{
  log_format beats '$msec $uri $http_nv_authorizations';
  access_log off;
  default_type application/json;
  keepalive_timeout 900s;
  keepalive_requests 1000000000;
  large_client_header_buffers 8 16k;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  map $uri $period {{ default 60; ~^/period-(?<of_uri>[0-9.]+)/ $of_uri; }}
  server {{
    listen 127.0.0.1:{http} backlog=8192;
    location = /status {{ stub_status; }}
    location ~ /sessions/setup$ {{ return 200 '{{"sessionToken":"{token}","heartbeat":$period}}'; }}
    location ~ /(sessions/heartbeat|licenses)$ {{ return 200 '{{"sessionToken":"{token}"}}'; }}
    location ~ /sessions/teardown$ {{ return 200 '{{}}'; }}
{delays}
  }}
}}
"""
DELAY = """
    location = /delay-{ms}/v1/sessions/heartbeat {{ echo_sleep {seconds}; echo -n '{{"sessionToken":"{token}"}}'; }}"""


class Server:
    """One nginx, its files in a folder of its own that goes with it."""

    def __init__(self, delays_ms: tuple[int, ...] = (50, 200)) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="usher-bench-"))
        self.folder.chmod(0o755)
        self.http = free_port()
        delays = "".join(DELAY.format(ms=ms, seconds=ms / 1000, token=TOKEN) for ms in delays_ms)
        text = CONFIGURATION.format(
            echo_module=ECHO_MODULE, files=60000, connections=16384, folder=self.folder, http=self.http, token=TOKEN, delays=delays
        )
        (self.folder / "nginx.conf").write_text(text, encoding="utf-8")
        command = [nginx(), "-p", str(self.folder), "-c", "nginx.conf", "-e", str(self.folder / "error.log")]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + 10
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"nginx ended at once: {(self.folder / 'error.log').read_text(encoding='utf-8')}")
            try:
                socket.create_connection(("127.0.0.1", self.http), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    self.close()
                    raise
                time.sleep(0.01)

    def base(self, path: str = "") -> str:
        """The SSM's URL, up to and with the version."""
        return f"http://127.0.0.1:{self.http}{path}/v1"

    def requests(self) -> int:
        """How many requests were answered since the start, this question not counted."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/status", timeout=5) as reply:
            numbers = re.search(r"(\d+) (\d+) (\d+)", reply.read().decode())
        assert numbers is not None
        self._asked = getattr(self, "_asked", 0) + 1
        return int(numbers.group(3)) - self._asked

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def nginx() -> str:
    found = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if found is None or not ECHO_MODULE.exists():
        raise RuntimeError("nginx or its echo module is missing: scripts/install-packages")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
