"""Kafka is downloaded where pip works: behind a proxy that replaces the server's certificates."""

from __future__ import annotations

import hashlib
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from eos_sink_lab.testing import DownloadError
from eos_sink_lab.testing.jar_cache import Artifact, download_jars
from eos_sink_lab.testing.java import find_java

MAVEN_CENTRAL = "repo1.maven.org"
POM = (
    "<project><modelVersion>4.0.0</modelVersion>"
    "<groupId>org.test</groupId><artifactId>a</artifactId><version>1</version></project>"
)
FILES = {"a-1.pom": POM.encode(), "a-1.jar": b"a jar"}


class Proxy(socketserver.ThreadingTCPServer):
    """Answers in place of the server that a client asks it to connect to."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, authority: trustme.CA) -> None:
        super().__init__(("127.0.0.1", 0), Inspection)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(MAVEN_CENTRAL).configure_cert(self.context)


class Inspection(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        with self.request.makefile("rb") as lines:
            assert lines.readline().startswith(f"CONNECT {MAVEN_CENTRAL}:443".encode())
            while lines.readline().strip():
                pass
        self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            with self.server.context.wrap_socket(self.request, server_side=True) as inside:
                self.answer(inside)
        except OSError:
            pass  # the client does not trust the certificate

    def answer(self, inside: ssl.SSLSocket) -> None:
        lines = inside.makefile("rb")
        method, path, _ = lines.readline().decode().split()
        while lines.readline().strip():
            pass
        name = path.rpartition("/")[2]
        content = FILES.get(name)
        if name.endswith(".sha1") and name[:-5] in FILES:
            content = hashlib.sha1(FILES[name[:-5]]).hexdigest().encode()
        status = "404 Not Found" if content is None else "200 OK"
        body = content or b""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        inside.sendall(head.encode() + (body if method == "GET" else b""))


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(autouse=True)
def proxy(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with Proxy(authority) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.delenv("https_proxy", raising=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def download(directory: Path, bundle: Path) -> Path:
    target = directory / "jars"
    target.mkdir()
    environ = {"EOS_CACHE": str(directory), "PIP_CERT": str(bundle)}
    artifact = Artifact("org.test", "a", "1")
    download_jars([artifact], target, find_java(), label="A", progress=print, environ=environ)
    return target


@pytest.mark.long
def test_jars_come_through_a_proxy_whose_authority_pip_trusts(
    authority: trustme.CA, tmp_path: Path
) -> None:
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    target = download(tmp_path, bundle)
    assert [path.name for path in target.iterdir()] == ["a-1.jar"]
    assert (target / "a-1.jar").read_bytes() == FILES["a-1.jar"]


def test_an_authority_that_pip_does_not_trust_either_is_named_as_the_cause(
    tmp_path: Path,
) -> None:
    bundle = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(bundle))
    with pytest.raises(DownloadError, match="SSL_CERT_FILE") as error:
        download(tmp_path, bundle)
    assert len(str(error.value).splitlines()) <= 6
