"""A certificate authority for a test: made at the start of a cluster, with openssl's command."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from eos_sink.testing.errors import BackendUnavailableError, TestClusterError
from eos_sink.testing.ports import HOST

STORE_PASSWORD = "changeit"  # noqa: S105 - of files that live as long as a test
"""Of every store and of every encrypted key that is made here."""

_DAYS = "30"
_TIMEOUT_S = 60
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, in each form that a client may want.

    Attributes:
        chain: PEM, the certificate and the authority's.
        key: PEM (PKCS#8), not encrypted.
        both: PEM, the key and then the chain: what Java calls a PEM store.
        pkcs12: both and the authority, under `STORE_PASSWORD`.
    """

    chain: Path
    key: Path
    both: Path
    pkcs12: Path


class Authority:
    """Its own root, which signs what it is asked for.

    Args:
        directory: takes all files; made if it is missing. An authority that is there goes on.

    Attributes:
        ca: the root certificate, PEM.

    Raises:
        BackendUnavailableError: there is no `openssl`.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.ca = directory / "ca.pem"
        self._ca_key = directory / "ca-key.pem"
        if shutil.which("openssl") is None:
            raise BackendUnavailableError(
                "A secured cluster makes its certificates with openssl, which is not on the PATH."
            )
        directory.mkdir(parents=True, exist_ok=True)
        if not self.ca.exists():
            self._openssl(
                *("req", "-x509", "-nodes", *_CURVE, "-days", _DAYS, "-subj", "/CN=test authority"),
                *("-keyout", str(self._ca_key), "-out", str(self.ca)),
            )

    @property
    def truststore(self) -> Path:
        """The root in a PKCS#12 store under `STORE_PASSWORD`, as `openssl pkcs12` makes it."""
        store = self._directory / "truststore.p12"
        if not store.exists():
            self._openssl(
                *("pkcs12", "-export", "-nokeys", "-in", str(self.ca), "-out", str(store)),
                *("-passout", f"pass:{STORE_PASSWORD}"),
            )
        return store

    def identity(self, name: str) -> Identity:
        """The certificate of `name`, for a client and for a broker on this machine."""
        ends = ("-chain.pem", "-key.pem", ".pem", ".p12")
        found = Identity(*(self._directory / f"{name}{end}" for end in ends))
        if not found.pkcs12.exists():
            self._sign(name, found)
        return found

    def _sign(self, name: str, to: Identity) -> None:
        request, certificate = to.chain.with_suffix(".csr"), to.chain.with_suffix(".crt")
        extensions = to.chain.with_suffix(".ext")
        extensions.write_text(
            f"subjectAltName=DNS:localhost,IP:{HOST}\nextendedKeyUsage=serverAuth,clientAuth\n"
        )
        self._openssl(
            *("req", "-new", "-nodes", *_CURVE, "-subj", f"/CN={name}"),
            *("-keyout", str(to.key), "-out", str(request)),
        )
        self._openssl(
            *("x509", "-req", "-in", str(request), "-days", _DAYS, "-extfile", str(extensions)),
            *("-CA", str(self.ca), "-CAkey", str(self._ca_key), "-CAcreateserial"),
            *("-out", str(certificate)),
        )
        to.chain.write_text(certificate.read_text() + self.ca.read_text())
        to.both.write_text(to.key.read_text() + to.chain.read_text())
        self._openssl(
            *("pkcs12", "-export", "-in", str(certificate), "-inkey", str(to.key)),
            *("-certfile", str(self.ca), "-name", name, "-out", str(to.pkcs12)),
            *("-passout", f"pass:{STORE_PASSWORD}"),
        )

    @staticmethod
    def _openssl(*arguments: str) -> None:
        done = subprocess.run(
            ["openssl", *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise TestClusterError(f"openssl {arguments[0]} failed: {done.stderr}")
