"""Runs nginx with fixed SSM replies, so that every program talks to the same server."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

ECHO_MODULE = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")
FILLER = "benchmark.token." + "t" * 600 + "."
TOKEN_BYTES = len(FILLER) + 32
"""The size of a session token; real signed tokens have about this size."""
LICENSE = '{"keys":[{"kty":"oct","kid":"ABEiM0RVZneImaq7zN3u_w","k":"_-7dzLuqmYh3ZlVEMyIRAA"}],"type":"temporary"}'

CONFIGURATION = """
load_module {echo_module};
daemon off;
worker_processes 1;
worker_rlimit_nofile {connections};
error_log {folder}/error.log warn;
pid {folder}/nginx.pid;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  log_format beats '$msec $request_id $came_with';
  map $http_nv_authorizations $came_with {{ default -; "~([0-9a-f]{{32}})$" $1; }}
  default_type application/json;
  keepalive_timeout 900s;
  keepalive_requests 1000000000;
  large_client_header_buffers 8 16k;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key; ssl_protocols TLSv1.3;
  server {{
    listen {host}:{http} backlog=8192;
    listen {host}:{https} ssl backlog=8192;
    location = /v1/sessions/setup {{ {log} return 200 '{setup}'; }}
    location = /v1/sessions/heartbeat {{ {log} return 200 '{beat}'; }}
    location = /v1/sessions/teardown {{ return 200 '{{}}'; }}
    location = /v1/licenses {{ return 200 '{license}'; }}
    location = /v1/licenses-v2 {{ return 200 '{license_v2}'; }}
{delays}
  }}
  # `return` replies before the body has arrived and then resets the stream; over HTTP/2, libcurl 7.88 sometimes reports
  # that as an error. So this server reads the body first.
  server {{
    listen {host}:{http2} ssl http2 backlog=8192;
    location = /v1/sessions/setup {{ echo_read_request_body; echo -n '{setup}'; }}
    location = /v1/sessions/heartbeat {{ echo_read_request_body; echo -n '{beat}'; }}
    location = /v1/sessions/teardown {{ echo_read_request_body; echo -n '{{}}'; }}
    location = /v1/licenses {{ echo_read_request_body; echo -n '{license}'; }}
  }}
}}
"""
DELAY = """
    location ~ ^/(all|beats)-{ms}/v1/sessions/heartbeat$ {{ echo_sleep {seconds}; echo -n '{beat}'; }}
    location = /beats-{ms}/v1/sessions/setup {{ return 200 '{setup}'; }}
    location = /all-{ms}/v1/sessions/setup {{ echo_sleep {seconds}; echo -n '{setup}'; }}
    location = /all-{ms}/v1/sessions/teardown {{ echo_sleep {seconds}; echo -n '{{}}'; }}
    location = /all-{ms}/v1/licenses {{ echo_sleep {seconds}; echo -n '{license}'; }}"""
DELAYS_MS = (5, 50, 200)


class Server:
    """One nginx with a temporary folder, which close() deletes."""

    def __init__(self, *, logs: bool = False, period_s: int = 60, host: str = "127.0.0.1") -> None:
        self._host = host
        self.folder = Path(tempfile.mkdtemp(prefix="usher-bench-"))
        self.folder.chmod(0o755)
        self.log = self.folder / "beats.log"
        """The server's log, written only if `logs` is true. Each line stands for a set-up or heartbeat: its time, the
        id of the token in the reply, and the id of the token in the request."""
        try:
            self.ca = make_certificates(self.folder, host)
            self._ports = dict(zip(("http", "https", "http2"), free_ports(3, host), strict=True))
            (self.folder / "nginx.conf").write_text(self._configuration(logs, period_s), encoding="utf-8")
            command = [nginx(), "-p", str(self.folder), "-c", "nginx.conf", "-e", str(self.folder / "error.log")]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            self._wait_until_it_listens()
        except BaseException:
            self.close()
            raise

    def _configuration(self, logs: bool, period_s: int) -> str:
        bodies = {
            "setup": f'{{"sessionToken":"{FILLER}$request_id","heartbeat":{period_s}}}',
            "beat": f'{{"sessionToken":"{FILLER}$request_id"}}',
            "license": LICENSE,
            "license_v2": f'{LICENSE[:-1]},"sessionToken":"{FILLER}$request_id","heartbeat":{period_s}}}',
        }
        delays = "".join(DELAY.format(ms=ms, seconds=ms / 1000, **bodies) for ms in DELAYS_MS)
        log = f"access_log {self.log} beats buffer=256k flush=1s;" if logs else ""
        return CONFIGURATION.format(
            echo_module=ECHO_MODULE,
            host=self._host,
            connections=16384,
            folder=self.folder,
            log=log,
            delays=delays,
            **bodies,
            **self._ports,
        )

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + 10
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"nginx ended at once: {(self.folder / 'error.log').read_text(encoding='utf-8')}")
            try:
                socket.create_connection((self._host, self._ports["http"]), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def base(self, path: str = "", scheme: str = "http") -> str:
        """Returns the SSM's URL with the version. `scheme`: http, https (HTTP/1.1 over TLS) or http2 (HTTP/2 over
        TLS)."""
        return f"{'http' if scheme == 'http' else 'https'}://{self._host}:{self._ports[scheme]}{path}/v1"

    def stop(self) -> None:
        """Stops nginx; its files stay until close()."""
        self.process.terminate()
        self.process.wait(10)

    def close(self) -> None:
        if hasattr(self, "process"):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def nginx() -> str:
    found = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if found is None or not ECHO_MODULE.exists():
        raise RuntimeError("nginx or its echo module is missing: scripts/install-packages")
    return found


def make_certificates(folder: Path, host: str) -> Path:
    """Makes a certificate authority, and a certificate for this IP address. Returns the file with the authority's
    certificate."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    signer = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    (folder / "names").write_text(f"subjectAltName=IP:{host}\n", encoding="utf-8")
    for command in (
        (
            "req",
            "-x509",
            *key,
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-days",
            "30",
            "-subj",
            "/CN=Benchmark authority",
        ),
        ("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={host}"),
        ("x509", "-req", "-in", "server.csr", *signer, "-days", "30", "-extfile", "names", "-out", "server.pem"),
    ):
        ended = subprocess.run(
            ["openssl", *command], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        if ended.returncode:
            raise RuntimeError(f"openssl {' '.join(command)}: {ended.stderr}")
    return folder / "ca.pem"


def free_ports(count: int, host: str) -> list[int]:
    """Returns `count` free ports. Keeps each port bound until all are found, so that no port is found twice."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((host, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
