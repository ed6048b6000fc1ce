"""TLS contexts with librdkafka's settings, for kafka-python and for token servers.

kafka-python's own `ssl_*` arguments do not suffice: they take no PEM text, and show passwords in
its log.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from eos_sink.errors import ConfigurationError


def make_broker_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """A context that treats a broker as librdkafka would (TLS 1.2 or newer).

    Raises:
        ConfigurationError: a certificate or key cannot be loaded; names the settings, never a key.
    """
    context = _make_context(settings, "ssl.ca.location", "ssl.ca.pem")
    if settings.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    with _convert_errors("kafka.ssl.keystore.*, kafka.ssl.key.* or kafka.ssl.certificate.*"):
        if ciphers := settings.get("ssl.cipher.suites"):
            context.set_ciphers(ciphers)
        if revoked := settings.get("ssl.crl.location"):
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        _load_identity(context, settings)
    return context


def make_token_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """A context for token servers, which trusts `https.ca.*`, else the system's certificates.

    Raises:
        ConfigurationError: the certificates cannot be loaded.
    """
    return _make_context(settings, "https.ca.location", "https.ca.pem")


def _make_context(settings: Mapping[str, str], location: str, pem: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    path = settings.get(location, "")
    with _convert_errors(f"kafka.{location}, kafka.{pem} or the trust store"):
        if settings.get(pem):
            context.load_verify_locations(cadata=settings[pem])
        elif path in ("", "probe"):
            context.load_default_certs()
        elif Path(path).is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    return context


def _load_identity(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    def get_password() -> str:
        # Without a password OpenSSL would ask at the terminal.
        if "ssl.key.password" not in settings:
            raise ValueError("the key is encrypted and kafka.ssl.key.password is not set")
        return settings["ssl.key.password"]

    if "ssl.certificate.pem" in settings:
        # Python loads keys from files only: a file that only this user can read, deleted at once.
        with tempfile.TemporaryDirectory(prefix="eos-sink-") as directory:
            path = Path(directory) / "identity.pem"
            path.touch(mode=0o600, exist_ok=False)
            path.write_text(
                f"{settings.get('ssl.key.pem', '')}\n{settings['ssl.certificate.pem']}\n"
            )
            context.load_cert_chain(path, password=get_password)
    elif "ssl.certificate.location" in settings:
        key = settings.get("ssl.key.location")
        context.load_cert_chain(settings["ssl.certificate.location"], key, get_password)


@contextmanager
def _convert_errors(which: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # OpenSSL's errors are OSErrors, which name the problem and nothing of the content.
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"TLS cannot be set up: {reason}.", remedy=f"Check {which}. Nothing was written."
        ) from None
