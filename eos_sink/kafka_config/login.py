"""The login of a query: user and password, or where its tokens come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.check_setting import find_setting
from eos_sink.kafka_config.token_source import (
    AWS_MSK_IAM,
    AZURE,
    HANDLERS,
    MSK,
    PROVIDER,
    TokenSource,
    find_provider,
    is_provider,
)

if TYPE_CHECKING:
    from eos_sink.kafka_config.jaas import Login

_JAAS = "sasl.jaas.config"
_CLIENT = "sasl.oauthbearer.client.credentials.client"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a name
_UNSECURED = "enable.sasl.oauthbearer.unsecure.jwt"
_EXTENSIONS = "sasl.oauthbearer.extensions"


def log_in(
    settings: dict[str, str], kafka: Mapping[str, str]
) -> tuple[list[str], TokenSource | None]:
    """Complete and check the settings of the login.

    Args:
        settings: librdkafka's, changed in place.
        kafka: as the user wrote them.

    Returns:
        Warnings, and where the tokens come from if librdkafka does not fetch them itself.

    Raises:
        ConfigurationError: one cannot be honoured, or two contradict each other; without secrets.
    """
    jaas, provider = kafka.get(_JAAS), kafka.get(PROVIDER, "").strip()
    if provider and not is_provider(provider):
        raise make_error(
            # Not the value: it may be a token.
            f"Option {PROVIDER} is neither msk, azure, gcp nor module:function.",
            "Correct it.",
        )
    if not settings.get("security.protocol", "").startswith("sasl"):
        unused = [name for name in settings if name.startswith("sasl.")]
        for name in (*unused, _UNSECURED):
            settings.pop(name, None)
        warning = (
            "Options kafka.sasl.* are ignored: kafka.security.protocol is neither SASL_SSL nor "
            "SASL_PLAINTEXT, so the clients do not log in."
        )
        return [warning] if unused or jaas or provider else [], None
    if "sasl.mechanism" not in settings:
        row = find_setting("sasl.mechanism")
        assert row is not None
        raise make_error("Option kafka.sasl.mechanism is missing.", row.note)
    mechanism = settings["sasl.mechanism"].strip().upper()
    login = None if jaas is None else _read_login(mechanism, jaas)
    for name, value in login.settings.items() if login else ():
        set_once(settings, name, value, name, _JAAS)
    handlers = (find_provider(kafka.get(name, "")) for name in HANDLERS)
    provider = provider or next(filter(None, handlers), "")
    if mechanism == AWS_MSK_IAM:
        mechanism, provider = "OAUTHBEARER", provider or MSK
    settings["sasl.mechanism"] = mechanism
    if mechanism == "OAUTHBEARER":
        if provider:
            return [], _make_source(settings, provider, login.aws if login else {})
        return list(_choose_tokens(settings)), None
    if provider:
        raise make_error(
            f"kafka.sasl.mechanism is {mechanism}, which uses no tokens, but a token provider is "
            f"set ({provider}).",
            f"Set kafka.sasl.mechanism to OAUTHBEARER, or remove option {PROVIDER} and "
            "kafka.sasl.*.callback.handler.class.",
        )
    if mechanism == "GSSAPI":
        # librdkafka would run kinit with a keytab of its own: the process has its credentials.
        settings["sasl.kerberos.min.time.before.relogin"] = "0"
        settings.setdefault("sasl.kerberos.service.name", "kafka")
        return [], None
    if not settings.keys() >= {"sasl.username", "sasl.password"}:
        raise make_error(
            f"kafka.sasl.mechanism is {mechanism}, but user and password are missing.",
            f"Set kafka.{_JAAS}, or kafka.sasl.username and kafka.sasl.password.",
        )
    return [], None


def set_once(settings: dict[str, str], target: str, value: str, one: str, other: str) -> None:
    """Set a setting. Raises ConfigurationError if it has another value already."""
    if settings.setdefault(target, value) != value:
        raise make_error(
            f"Options kafka.{one} and kafka.{other} mean the same and differ.",
            "Remove one of them.",
        )


def make_error(fact: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(fact, remedy=f"{remedy} Nothing was written.")


def _read_login(mechanism: str, jaas: str) -> Login:
    from eos_sink.kafka_config.jaas import JaasError, read_jaas

    try:
        login = read_jaas(jaas)
    except JaasError as wrong:
        raise make_error(f"Option kafka.{_JAAS} cannot be used: {wrong}.", "Correct it.") from None
    if mechanism not in login.mechanisms:
        raise make_error(
            f"Option kafka.{_JAAS} is for {' or '.join(login.mechanisms)}, and "
            f"kafka.sasl.mechanism is {mechanism}.",
            "Correct one of them.",
        )
    return login


def _make_source(
    settings: dict[str, str], provider: str, arguments: Mapping[str, str]
) -> TokenSource:
    """Take the settings that librdkafka would fetch or make tokens with."""
    if _TOKEN_URL in settings:
        raise make_error(
            f"Tokens would come from two sources: kafka.{_TOKEN_URL} and the token provider "
            f"{provider}.",
            f"Remove one of them (option {PROVIDER}, kafka.sasl.*.callback.handler.class).",
        )
    for name in (_UNSECURED, "sasl.oauthbearer.config", "sasl.oauthbearer.method"):
        settings.pop(name, None)
    pairs = settings.pop(_EXTENSIONS, "").split(",")
    source = TokenSource(
        provider,
        settings.get("bootstrap.servers", ""),
        tuple(sorted(arguments.items())),
        tuple(
            sorted(
                (name, value) for name, _, value in (pair.partition("=") for pair in pairs) if name
            )
        ),
    )
    if provider == AZURE and not source.event_hubs:
        raise make_error(
            f"The token provider azure makes tokens for Event Hubs (*.servicebus.windows.net), and "
            f"kafka.bootstrap.servers is {source.servers}.",
            f"Set option {PROVIDER} to a function of yours (module:function).",
        )
    return source


def _choose_tokens(settings: dict[str, str]) -> Iterator[str]:
    """Settings for tokens from the server, or for unsigned ones; yields warnings."""
    if _TOKEN_URL in settings:
        needed = (f"{_CLIENT}.id", f"{_CLIENT}.secret")
        missing = [f"kafka.{name}" for name in needed if name not in settings]
        if missing:
            raise make_error(
                f"kafka.{_TOKEN_URL} is set without {' and '.join(missing)}.",
                f"Set it, or clientId and clientSecret in kafka.{_JAAS}.",
            )
        if settings[_TOKEN_URL].lower().startswith("http:"):
            yield (
                f"kafka.{_TOKEN_URL} is http, not https: the client's secret and the token cross "
                "the network unencrypted."
            )
        settings["sasl.oauthbearer.method"] = "oidc"
        settings.pop(_UNSECURED, None)
        settings.pop("sasl.oauthbearer.config", None)
    elif settings.get(_UNSECURED) == "true":
        yield (
            f"The query logs in with an unsigned token (no kafka.{_TOKEN_URL}): that is for tests "
            "only."
        )
    else:
        raise make_error(
            "kafka.sasl.mechanism is OAUTHBEARER, but no source of tokens is set.",
            f"Set kafka.{_TOKEN_URL}, kafka.{_CLIENT}.id and kafka.{_CLIENT}.secret; or option "
            f"{PROVIDER}.",
        )
