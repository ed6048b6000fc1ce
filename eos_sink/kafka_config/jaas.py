"""Reads `sasl.jaas.config`. Its content holds passwords, so no error message contains any of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_sink.kafka_config.token_source import AWS_MSK_IAM

_ENTRY = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*);\s*", re.DOTALL)
_OPTION = re.compile(
    r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"'=]+))(?=\s|$)""",
    re.DOTALL,
)
# As java.io.StreamTokenizer reads a quoted string.
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
    "software.amazon.msk.auth.iam.IAMLoginModule": (AWS_MSK_IAM,),
    "com.sun.security.auth.module.Krb5LoginModule": ("GSSAPI",),
}
# Databricks has the classes in packages of other names.
_SHADED = re.compile(r"(kafkashaded|shadedmskiam)\.")
_USER = {"username": "sasl.username", "password": "sasl.password"}
_CLIENT = {
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_KERBEROS = {"serviceName": "sasl.kerberos.service.name"}
_CREDENTIALS = {"keyTab", "principal", "ticketCache"}
_KERBEROS_IGNORED = {
    "debug",
    "doNotPrompt",
    "isInitiator",
    "refreshKrb5Config",
    "renewTGT",
    "storeKey",
    "useTicketCache",
}
# MSKCredentialProvider of aws-msk-iam-auth 2.3. Left out: awsShouldUseFips, and
# awsMskRegionProvider, a Java class.
_AWS = {
    "awsProfileName",
    "awsRoleArn",
    "awsRoleAccessKeyId",
    "awsRoleExternalId",
    "awsRoleSecretAccessKey",
    "awsRoleSessionName",
    "awsRoleSessionToken",
    "awsStsRegion",
}
_AWS_IGNORED = {"awsAddDefaultProviders", "awsDebugCreds", "awsMaxBackOffTimeMs", "awsMaxRetries"}


class JaasError(ValueError):
    """The entry cannot be used; the message contains nothing of it."""


@dataclass(frozen=True)
class Login:
    """A login.

    Attributes:
        mechanisms: the SASL mechanisms that it can be used with.
        settings: librdkafka's; they contain secrets.
        aws: the options of Amazon's library for IAM, with their names; may contain secrets.
    """

    mechanisms: tuple[str, ...]
    settings: Mapping[str, str] = field(repr=False)
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_jaas(text: str) -> Login:
    """Read the login from a JAAS entry.

    Raises:
        JaasError: the entry is malformed, or names what cannot be honoured.
    """
    entry = _ENTRY.fullmatch(text)
    module = _SHADED.sub("", entry[1], count=1) if entry else ""
    if not entry or module not in _MODULES:
        raise JaasError(
            "It is not one entry of PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule, "
            "IAMLoginModule or Krb5LoginModule that ends with a semicolon"
        )
    mechanisms, options = _MODULES[module], _read_options(entry[3])
    if options.pop("tokenauth", "false").lower() == "true":
        raise JaasError(
            "It logs in with a delegation token, which lives in the JVM: Spark's "
            "(spark.kafka.clusters.*) cannot be read from Python"
        )
    if mechanisms == ("GSSAPI",):
        return Login(mechanisms, _take_kerberos(options))
    aws = _take_aws(options)
    if mechanisms == (AWS_MSK_IAM,):
        return Login(mechanisms, _rename(options, {}), aws)
    if mechanisms == ("OAUTHBEARER",):
        # Guides for Azure have it in the entry, where it changes nothing.
        options.pop("ssl.protocol", None)
        return Login(mechanisms, {**_take_oauth(options), **_rename(options, _CLIENT)}, aws)
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
        found[option[1]] = option[4] if quoted is None else _ESCAPE.sub(_unescape, quoted)
        text = text[option.end() :]
    return found


def _unescape(escape: re.Match[str]) -> str:
    text = escape[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _ESCAPED.get(text, text)


def _take_kerberos(options: dict[str, str]) -> dict[str, str]:
    if options.pop("useKeyTab", "false").lower() == "true" or _CREDENTIALS & options.keys():
        raise JaasError(
            "It names a keytab, a ticket cache or a principal, and both Kafka clients use the "
            "process's own: set KRB5_CLIENT_KTNAME to the keytab, or KRB5CCNAME to the cache, in "
            "the environment of driver and executors, and useTicketCache=true here"
        )
    return _rename({k: v for k, v in options.items() if k not in _KERBEROS_IGNORED}, _KERBEROS)


def _take_aws(options: dict[str, str]) -> dict[str, str]:
    """Remove the options of Amazon's library, and return those that choose the identity."""
    taken = {name: options.pop(name) for name in list(options) if name.startswith("aws")}
    if not taken.keys() <= _AWS | _AWS_IGNORED:
        raise JaasError(f"It has aws options other than {', '.join(sorted(_AWS | _AWS_IGNORED))}")
    return {name: value for name, value in taken.items() if name in _AWS}


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
        raise JaasError(f"It has options other than {', '.join(names) or 'those of AWS'}")
    return {names[name]: value for name, value in options.items()}
