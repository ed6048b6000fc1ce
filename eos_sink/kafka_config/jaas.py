"""`sasl.jaas.config`, read without ever showing any of it: it holds passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_ENTRY = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*);\s*", re.DOTALL)
_OPTION = re.compile(
    r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"'=]+))(?=\s|$)""",
    re.DOTALL,
)
_MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
# Some distributions of Spark carry Kafka's classes under a package of their own.
_SHADED = "kafkashaded."
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
_UNSECURED = "unsecuredLoginStringClaim_sub"
_LIFETIME = "unsecuredLoginLifetimeSeconds"
_CLIENT = "sasl.oauthbearer.client.credentials.client"
_NAMES = {
    "PLAIN": {"username": "sasl.username", "password": "sasl.password"},
    "OAUTHBEARER": {
        "clientId": f"{_CLIENT}.id",
        "clientSecret": f"{_CLIENT}.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}


class JaasError(ValueError):
    """What cannot be honoured; the message holds nothing of the text."""


@dataclass(frozen=True)
class Login:
    """Who logs in.

    Attributes:
        mechanisms: of SASL, that it can be used with.
        settings: librdkafka's; they hold secrets.
    """

    mechanisms: tuple[str, ...]
    settings: Mapping[str, str] = field(repr=False)


def read_jaas(text: str) -> Login:
    """The login that a JAAS entry describes.

    Raises:
        JaasError: it is malformed, or names what cannot be honoured.
    """
    entry = _ENTRY.fullmatch(text)
    module = entry[1].removeprefix(_SHADED) if entry else ""
    if module == _KERBEROS:
        raise JaasError(
            "It names Kerberos, which one of the two Kafka clients cannot speak without the "
            "system's libraries"
        )
    if not entry or module not in _MODULES:
        raise JaasError(
            "It is not one entry of PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule "
            "that ends with a semicolon"
        )
    mechanisms = _MODULES[module]
    options = _options(entry[3])
    if options.pop("tokenauth", "false").lower() == "true":
        raise JaasError(
            "It logs in by a delegation token, which lives in the JVM: Spark's "
            "(spark.kafka.clusters.*) cannot be read from Python"
        )
    if mechanisms == ("OAUTHBEARER",):
        return Login(mechanisms, _oauth(options))
    if not options.keys() >= _NAMES["PLAIN"].keys():
        raise JaasError("It has no username and password")
    return Login(mechanisms, _renamed(options, _NAMES["PLAIN"]))


def _options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    while text.strip():
        option = _OPTION.match(text)
        if not option:
            raise JaasError('Its options are not all of the form name="value"')
        quoted = option[2] if option[2] is not None else option[3]
        found[option[1]] = option[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        text = text[option.end() :]
    return found


def _oauth(options: dict[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    extensions = {n: options.pop(n) for n in list(options) if n.startswith("extension_")}
    if extensions:
        pairs = (f"{n.removeprefix('extension_')}={v}" for n, v in extensions.items())
        settings["sasl.oauthbearer.extensions"] = ",".join(pairs)
    subject, lifetime = options.pop(_UNSECURED, None), options.pop(_LIFETIME, "3600")
    if subject is not None:
        if not re.fullmatch(r"\S+", subject) or not lifetime.isdecimal():
            raise JaasError("Its unsecured token needs a subject without blanks and whole seconds")
        settings["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        settings["sasl.oauthbearer.config"] = f"principal={subject} lifeSeconds={lifetime}"
    return {**settings, **_renamed(options, _NAMES["OAUTHBEARER"])}


def _renamed(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    if not options.keys() <= names.keys():
        raise JaasError(f"It has options beside {', '.join(names)}")
    return {names[name]: value for name, value in options.items()}
