"""Lets Java reach the network as pip does, which has just installed this package."""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

NOT_TRUSTED = "PKIX path building failed"
"""In Java's message if it does not trust the authority behind a server's certificate."""

_BUNDLE_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_DEFAULT = "changeit"  # Java's default password; nothing in the store is secret
_BUNDLE_OF_DEBIAN = "ca-certificates.crt"


def proxy_options() -> list[str]:
    """Java's options for the proxy of the environment (HTTPS_PROXY), which Java does not read."""
    proxies = getproxies_environment()
    proxy = urlsplit(proxies.get("https", ""))
    if not proxy.hostname:
        return []
    direct = [host.strip() for host in proxies.get("no", "").split(",") if host.strip()]
    patterns = "|".join(f"*{host}" if host.startswith(".") else host for host in direct)
    return [
        f"-Dhttps.proxyHost={proxy.hostname}",
        f"-Dhttps.proxyPort={proxy.port or 80}",
        *([f"-Dhttp.nonProxyHosts={patterns}"] if patterns else []),
    ]


def find_bundle(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file of the authorities that Python and pip trust; None if there is none."""
    paths = ssl.get_default_verify_paths()
    named = [environ.get(name) for name in _BUNDLE_VARIABLES]
    of_directory = Path(paths.capath or "/etc/ssl/certs", _BUNDLE_OF_DEBIAN)
    places = (Path(place) for place in (*named, paths.cafile, of_directory) if place)
    return next((place for place in places if place.is_file()), None)


def trust_options(bundle: Path, store: Path) -> list[str]:
    """Java's options to trust the authorities of a PEM file, written to `store` for it.

    Java reads a store, not PEM. The format is that of `sun.security.provider.JavaKeyStore`.

    Raises:
        OSError: the file cannot be read, or is no PEM (`ssl.SSLError`).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(bundle)
    authorities = context.get_ca_certs(binary_form=True)
    content = struct.pack(">III", 0xFEEDFEED, 2, len(authorities))
    for number, authority in enumerate(authorities):
        alias = str(number).encode()
        content += struct.pack(">IH", 2, len(alias)) + alias  # 2: a trusted certificate
        content += struct.pack(">QH5sI", 0, 5, b"X.509", len(authority)) + authority
    salted = _DEFAULT.encode("utf-16-be") + b"Mighty Aphrodite" + content
    store.write_bytes(content + hashlib.sha1(salted, usedforsecurity=False).digest())
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={_DEFAULT}",
    ]
