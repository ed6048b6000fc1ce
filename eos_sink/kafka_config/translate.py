"""All settings of a query together: librdkafka's settings, the stores to read, the warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.check_setting import check_setting, find_setting
from eos_sink.kafka_config.jaas import JaasError, read_jaas
from eos_sink.kafka_config.java_settings import Handling

_LEVEL = "compression.level"
_JAAS = "sasl.jaas.config"
_CLIENT = "sasl.oauthbearer.client.credentials.client"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a name
_UNSECURED = "enable.sasl.oauthbearer.unsecure.jwt"
_BACKOFF, _MAX_BACKOFF = "reconnect.backoff.ms", "reconnect.backoff.max.ms"


@dataclass(frozen=True)
class Store:
    """A key store or trust store, to be read where it is used.

    Attributes:
        option: its name in error messages, without `kafka.` in front.
        private: it holds a key and its certificates; else the certificates to trust.
        location: path on every machine that runs the sink.
        kind: the value of `ssl.*store.type` in upper case; "": the file's content decides.
        password: of a PKCS12 store.
    """

    option: str
    private: bool
    location: str
    kind: str
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Translation:
    """A query's settings for librdkafka.

    Attributes:
        settings: by librdkafka's names; may contain secrets, so not part of repr.
        stores: to read as well, if the query uses TLS.
        warnings: sentences for the log, without secrets.
    """

    settings: Mapping[str, str] = field(repr=False)
    stores: tuple[Store, ...] = ()
    warnings: tuple[str, ...] = ()


def translate(kafka: Mapping[str, str], transaction_timeout_ms: int | None = None) -> Translation:
    """Translate the names and values that users write to those of librdkafka.

    Args:
        kafka: names in lower case, without `kafka.` in front.
        transaction_timeout_ms: of the tasks' transactions, for the warnings.

    Raises:
        ConfigurationError: one cannot be honoured, or two contradict each other; without secrets.
    """
    warnings: list[str] = []
    settings: dict[str, str] = {}
    given_as: dict[str, str] = {}
    levels: dict[str, str] = {}
    for name, value in kafka.items():
        checked = check_setting(name, value)
        if checked.handling is Handling.REFUSED:
            raise _error(f"Option kafka.{name} cannot be used with this sink.", checked.note)
        if checked.warning:
            done = "ignored" if checked.handling is Handling.IGNORED else "adjusted"
            warnings.append(f"Option kafka.{name} is {done}: {checked.note}")
        for target, taken in checked.settings.items():
            if target == _LEVEL and name != _LEVEL:
                levels[name.split(".")[1]] = taken
            else:
                _set(settings, target, taken, given_as.setdefault(target, name), name)
    compression = settings.get("compression.type", "none")
    if compression in levels:
        settings.setdefault(_LEVEL, levels[compression])
    if transaction_timeout_ms is not None:
        warnings += [
            f"Option kafka.{name} is adjusted: {capped} is used, as long as the transaction lasts "
            "(eos.transaction.timeout.ms)."
            for name, capped in cap_timeouts(settings, transaction_timeout_ms).items()
        ]
    _check_times(settings)
    warnings += _log_in(settings, kafka.get(_JAAS))
    stores = tuple(_stores(kafka)) if settings.get("security.protocol", "").endswith("ssl") else ()
    return Translation(settings, stores, tuple(warnings))


def cap_timeouts(settings: Mapping[str, str], transaction_timeout_ms: int) -> dict[str, str]:
    """The timeouts to lower for a producer: librdkafka refuses any above its transaction's."""
    return {
        name: str(transaction_timeout_ms)
        for name in ("delivery.timeout.ms", "socket.timeout.ms")
        if int(settings.get(name, 0)) > transaction_timeout_ms
    }


def _check_times(settings: dict[str, str]) -> None:
    # librdkafka refuses a maximum below the first backoff; Java takes the longer one. The numbers
    # are librdkafka's defaults.
    backoff, longest = settings.get(_BACKOFF, "100"), settings.get(_MAX_BACKOFF, "10000")
    if int(longest) < int(backoff):
        settings[_BACKOFF] = settings[_MAX_BACKOFF] = backoff if _BACKOFF in settings else longest
    delivery = settings.get("delivery.timeout.ms")
    if delivery and int(delivery) <= float(settings.get("linger.ms", 0)):
        raise _error(
            f"Option kafka.delivery.timeout.ms is {delivery}, not more than kafka.linger.ms: "
            "every record would be late.",
            "Raise the one or lower the other.",
        )


def _log_in(settings: dict[str, str], jaas: str | None) -> Iterator[str]:
    """Complete and check the settings of the login; yields warnings."""
    if not settings.get("security.protocol", "").startswith("sasl"):
        unused = [name for name in settings if name.startswith("sasl.")]
        for name in (*unused, _UNSECURED):
            settings.pop(name, None)
        if unused or jaas:
            yield (
                "Options kafka.sasl.* are ignored: kafka.security.protocol is neither "
                "SASL_SSL nor SASL_PLAINTEXT, so the clients do not log in."
            )
        return
    if "sasl.mechanism" not in settings:
        row = find_setting("sasl.mechanism")
        assert row is not None
        raise _error("Option kafka.sasl.mechanism is missing.", row.note)
    mechanism = settings["sasl.mechanism"] = settings["sasl.mechanism"].strip().upper()
    if jaas is not None:
        _apply_jaas(settings, mechanism, jaas)
    if mechanism == "OAUTHBEARER":
        yield from _choose_tokens(settings)
    elif not settings.keys() >= {"sasl.username", "sasl.password"}:
        raise _error(
            f"kafka.sasl.mechanism is {mechanism}, but user and password are missing.",
            f"Set kafka.{_JAAS}, or kafka.sasl.username and kafka.sasl.password.",
        )


def _apply_jaas(settings: dict[str, str], mechanism: str, jaas: str) -> None:
    try:
        login = read_jaas(jaas)
    except JaasError as wrong:
        raise _error(f"Option kafka.{_JAAS} cannot be used: {wrong}.", "Correct it.") from None
    if mechanism not in login.mechanisms:
        raise _error(
            f"Option kafka.{_JAAS} is for {' or '.join(login.mechanisms)}, and "
            f"kafka.sasl.mechanism is {mechanism}.",
            "Correct one of them.",
        )
    for name, value in login.settings.items():
        _set(settings, name, value, name, _JAAS)


def _choose_tokens(settings: dict[str, str]) -> Iterator[str]:
    """Settings for tokens from the server, or for unsigned ones; yields warnings."""
    if _TOKEN_URL in settings:
        needed = (f"{_CLIENT}.id", f"{_CLIENT}.secret")
        missing = [f"kafka.{name}" for name in needed if name not in settings]
        if missing:
            raise _error(
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
        raise _error(
            "kafka.sasl.mechanism is OAUTHBEARER, but no source of tokens is set.",
            f"Set kafka.{_TOKEN_URL}, kafka.{_CLIENT}.id and kafka.{_CLIENT}.secret.",
        )


def _stores(kafka: Mapping[str, str]) -> Iterator[Store]:
    for which, private in (("keystore", True), ("truststore", False)):
        option = f"ssl.{which}.location"
        if location := kafka.get(option, "").strip():
            kind = kafka.get(f"ssl.{which}.type", "").strip().upper()
            yield Store(option, private, location, kind, kafka.get(f"ssl.{which}.password"))


def _set(settings: dict[str, str], target: str, value: str, one: str, other: str) -> None:
    if settings.setdefault(target, value) != value:
        raise _error(
            f"Options kafka.{one} and kafka.{other} mean the same and differ.",
            "Remove one of them.",
        )


def _error(fact: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(fact, remedy=f"{remedy} Nothing was written.")
