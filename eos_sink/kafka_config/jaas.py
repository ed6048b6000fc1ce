"""Reads `sasl.jaas.config`. Its content holds passwords, so no error message contains any of it."""

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
_USER = {"username": "sasl.username", "password": "sasl.password"}
_CLIENT = {
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}


class JaasError(ValueError):
    """The entry cannot be used; the message contains nothing of it."""


@dataclass(frozen=True)
class Login:
    """A login.

    Attributes:
        mechanisms: the SASL mechanisms that it can be used with.
        settings: librdkafka's; they contain secrets.
    """

    mechanisms: tuple[str, ...]
    settings: Mapping[str, str] = field(repr=False)


def read_jaas(text: str) -> Login:
    """Read the login from a JAAS entry.

    Raises:
        JaasError: the entry is malformed, or names what cannot be honoured.
    """
    entry = _ENTRY.fullmatch(text)
    # Some distributions of Spark contain Kafka's classes in a package of another name.
    module = entry[1].removeprefix("kafkashaded.") if entry else ""
    if module == "com.sun.security.auth.module.Krb5LoginModule":
        raise JaasError(
            "It names Kerberos, which one of the two Kafka clients cannot speak without the "
            "system's libraries"
        )
    if not entry or module not in _MODULES:
        raise JaasError(
            "It is not one entry of PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule "
            "that ends with a semicolon"
        )
    mechanisms, options = _MODULES[module], _read_options(entry[3])
    if options.pop("tokenauth", "false").lower() == "true":
        raise JaasError(
            "It logs in with a delegation token, which lives in the JVM: Spark's "
            "(spark.kafka.clusters.*) cannot be read from Python"
        )
    if mechanisms == ("OAUTHBEARER",):
        return Login(mechanisms, {**_take_oauth(options), **_rename(options, _CLIENT)})
    if not options.keys() >= _USER.keys():
        raise JaasError("It has no username and password")
    return Login(mechanisms, _rename(options, _USER))


def _read_options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    while text.strip():
        option = _OPTION.match(text)
        if not option:
            raise JaasError('Its options are not all of the form name="value"')
        quoted = option[2] if option[2] is not None else option[3]
        found[option[1]] = option[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        text = text[option.end() :]
    return found


def _take_oauth(options: dict[str, str]) -> dict[str, str]:
    """Remove the options for extensions and unsigned tokens, and return them as settings."""
    settings: dict[str, str] = {}
    extensions = [name for name in options if name.startswith("extension_")]
    if extensions:
        settings["sasl.oauthbearer.extensions"] = ",".join(
            f"{name.removeprefix('extension_')}={options.pop(name)}" for name in extensions
        )
    subject = options.pop("unsecuredLoginStringClaim_sub", None)
    lifetime = options.pop("unsecuredLoginLifetimeSeconds", "3600")
    if subject is not None:
        if not re.fullmatch(r"\S+", subject) or not lifetime.isdecimal():
            raise JaasError("Its unsecured token needs a subject without blanks and whole seconds")
        settings["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        settings["sasl.oauthbearer.config"] = f"principal={subject} lifeSeconds={lifetime}"
    return settings


def _rename(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    if not options.keys() <= names.keys():
        raise JaasError(f"It has options other than {', '.join(names)}")
    return {names[name]: value for name, value in options.items()}
