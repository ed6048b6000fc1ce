"""TLS for Python programs from librdkafka's settings: for kafka-python and for token servers."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from eos_sink.errors import ConfigurationError

_NOTHING = " Nothing was written."


def broker_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """How librdkafka would meet a broker with these settings (TLS 1.2 or newer).

    Raises:
        ConfigurationError: a certificate or key cannot be loaded; names the settings, never a key.
    """
    context = _trusting(settings, "ssl.ca.location", "ssl.ca.pem")
    if settings.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    try:
        if ciphers := settings.get("ssl.cipher.suites"):
            context.set_ciphers(ciphers)
        if revoked := settings.get("ssl.crl.location"):
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        _load_identity(context, settings)
    except (OSError, ValueError) as error:
        raise _unusable(
            error, "kafka.ssl.keystore.*, kafka.ssl.key.* or kafka.ssl.certificate.*"
        ) from None
    return context


def token_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """How a token server is met: by `https.ca.*`, else by what the system trusts.

    Raises:
        ConfigurationError: the certificates cannot be loaded.
    """
    return _trusting(settings, "https.ca.location", "https.ca.pem")


def _trusting(settings: Mapping[str, str], location: str, pem: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    path = settings.get(location, "")
    try:
        if settings.get(pem):
            context.load_verify_locations(cadata=settings[pem])
        elif path and path != "probe":
            directory = Path(path).is_dir()
            context.load_verify_locations(
                cafile=None if directory else path, capath=path if directory else None
            )
        else:
            context.load_default_certs()
    except (OSError, ValueError) as error:
        raise _unusable(error, f"kafka.{location}, kafka.{pem} or the trust store") from None
    return context


def _load_identity(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    password = settings.get("ssl.key.password")

    def given() -> str:
        # Without it OpenSSL would ask at the terminal.
        if password is None:
            raise ValueError("the key is encrypted and kafka.ssl.key.password is not set")
        return password

    if "ssl.certificate.pem" in settings:
        # Python loads keys from files only: one that nobody else can open, gone at once.
        with tempfile.TemporaryDirectory(prefix="eos-sink-") as directory:
            path = Path(directory) / "identity.pem"
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(
                    f"{settings.get('ssl.key.pem', '')}\n{settings['ssl.certificate.pem']}\n"
                )
            context.load_cert_chain(path, password=given)
    elif "ssl.certificate.location" in settings:
        context.load_cert_chain(
            settings["ssl.certificate.location"], settings.get("ssl.key.location"), password=given
        )


def _unusable(error: Exception, which: str) -> ConfigurationError:
    # OpenSSL names what is wrong and none of the content; its errors are OSErrors.
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return ConfigurationError(
        f"TLS cannot be set up: {reason}.", remedy=f"Check {which}." + _NOTHING
    )
