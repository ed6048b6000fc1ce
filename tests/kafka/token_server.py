"""A login server for tests: OAuth client credentials over http, or https with a certificate."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TypeVar

from eos_sink_lab.testing.security import Identity

Server = TypeVar("Server", bound=HTTPServer)

CLIENT = "sasl.oauthbearer.client.credentials.client"


class TokenServer(HTTPServer):
    """Gives "token-1", "token-2", ... or the given tokens.

    Attributes:
        asked: the header Authorization and the form of each request.
        token: makes the token of the request of that number.
        status: of its answers.
        answer: in place of a token.
    """

    def __init__(self, identity: Identity | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self._scheme = "http"
        if identity is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(identity.chain, identity.key)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self._scheme = "https"
        self.token: Callable[[int], str] = "token-{}".format
        self.asked: list[tuple[str, str]] = []
        self.status = 200
        self.answer: bytes | None = None

    def settings(self, **more: str) -> dict[str, str]:
        """librdkafka's, and Java's: by which a client asks here."""
        url = f"{self._scheme}://127.0.0.1:{self.server_port}/token"
        return {
            "sasl.oauthbearer.token.endpoint.url": url,
            f"{CLIENT}.id": "id",
            f"{CLIENT}.secret": "canary",
            **{name.replace("_", "."): value for name, value in more.items()},
        }


class _Answers(BaseHTTPRequestHandler):
    server: TokenServer

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.headers["Authorization"], form))
        token = {"access_token": self.server.token(len(self.server.asked)), "expires_in": 100}
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        answer = self.server.answer or json.dumps(token).encode()
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
