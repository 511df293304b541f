"""Runs the servers of floods.py in a separate process, so that they do not slow down the process of the test.

    server.py KEY_UPDATES

KEY_UPDATES is the program that key_updates.c makes. Prints one line of JSON: the file of the certificate authority, the
URL of each flood, and the URLs of the slow servers. Ends when its input ends.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

from floods import ACK, DATA, END_STREAM, FLOODS, HEADERS, PIECE, SETTINGS, SLOW_PIECE, Flood, frame

from usher.testing.headend.fixtures import Authority

TICKETS = 2_000_000
PROGRAMS: list[subprocess.Popen[str]] = []
"""The running programs; without a reference, Python would close their input."""


class Server:
    """Floods every client that connects. A slow server waits after each piece until the client has read it."""

    def __init__(self, flood: Flood, authority: Authority, is_slow: bool = False) -> None:
        self._flood = flood
        self._is_slow = is_slow
        self._tls: ssl.SSLContext | None = None
        if flood.kind in ("h2", "tickets"):
            self._tls = authority.server_context()
            if flood.kind == "h2":
                self._tls.set_alpn_protocols(["h2"])
            else:
                self._tls.num_tickets = TICKETS
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        scheme = "http" if self._flood.kind == "http" else "https"
        return f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), client:
            client.settimeout(30)
            if not self._tls:
                self._send(client)
                return
            with self._tls.wrap_socket(client, server_side=True) as stream:
                self._send(stream)

    def _send(self, stream: socket.socket) -> None:
        if self._flood.kind == "h2":
            read_http2_request(stream, self._flood.acknowledges)
        elif self._flood.kind != "raw":
            read_request(stream)
        stream.sendall(self._flood.start)
        for piece in self._flood.pieces(SLOW_PIECE if self._is_slow else PIECE):
            stream.sendall(piece)
            if self._is_slow:
                wait_until_read(stream)
        while stream.recv(4096):  # the flood has ended: wait for the client to close
            pass


def wait_until_read(stream: socket.socket) -> None:
    """Waits until the client, on this machine, has read all that the server has sent to it, or has closed."""
    ours, theirs = (f"0100007F:{address[1]:04X}" for address in (stream.getsockname(), stream.getpeername()))
    while True:
        # The queues of both ends of the connection: "bytes to send:bytes to read". A closed end has no line.
        lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
        queues = {line[1]: line[4].split(":") for line in lines if {line[1], line[2]} == {ours, theirs}}
        if theirs not in queues or (int(queues[theirs][1], 16) == 0 and int(queues[ours][0], 16) == 0):
            return
        time.sleep(0.0002)


def read_request(stream: socket.socket) -> None:
    """Reads one request up to the end of its headers. The server does not need the body, which is short."""
    head = b""
    while b"\r\n\r\n" not in head:
        if not (more := stream.recv(4096)):
            raise EOFError
        head += more


def read_http2_request(stream: socket.socket, acknowledges: bool) -> None:
    """Sends a SETTINGS frame, and reads until the first HTTP/2 request is complete."""
    incoming = stream.makefile("rb")
    incoming.read(24)
    stream.sendall(frame(SETTINGS, b"", 0))
    while True:
        head = incoming.read(9)
        if len(head) < 9:
            raise EOFError
        kind, flags = head[3], head[4]
        incoming.read(int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK and acknowledges:
            stream.sendall(frame(SETTINGS, b"", 0, ACK))
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            return


def start(flood: Flood, authority: Authority, key_updates: str) -> str:
    """Starts the server of a flood, and returns its URL."""
    if flood.kind != "key updates":
        return Server(flood, authority).url
    certificate = authority.ca_file.with_name("server.pem")
    authority.write_server_certificate(certificate)
    command = [key_updates, str(certificate), flood.unit.decode()]
    # When this process ends, the input of the program ends, and so the program ends too.
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    PROGRAMS.append(program)
    assert program.stdout is not None
    return f"https://127.0.0.1:{int(program.stdout.readline())}"


def main() -> None:
    authority = Authority()
    urls = {name: start(flood, authority, sys.argv[1]) for name, flood in FLOODS.items()}
    slow_urls = {
        name: Server(flood, authority, is_slow=True).url for name, flood in FLOODS.items() if flood.is_too_large
    }
    told = {"ca_file": str(authority.ca_file), "urls": urls, "slow_urls": slow_urls}
    print(json.dumps(told), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
