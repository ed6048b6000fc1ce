"""All settings of a query at once: what librdkafka gets, which stores to read, what to warn of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.check_setting import judge, setting
from eos_sink.kafka_config.jaas import JaasError, read_jaas
from eos_sink.kafka_config.setting import Fate

_LEVEL = "compression.level"
_NOTHING = " Nothing was written."
_JAAS = "sasl.jaas.config"
_OAUTH_CLIENT = "sasl.oauthbearer.client.credentials.client"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a name
_UNSECURED = "enable.sasl.oauthbearer.unsecure.jwt"
# librdkafka's defaults.
_FIRST_BACKOFF_MS = "100"
_LONGEST_BACKOFF_MS = "10000"
_WITHIN_TRANSACTION = ("delivery.timeout.ms", "socket.timeout.ms")


@dataclass(frozen=True)
class Store:
    """A key store or trust store that has to be read where it is used.

    Attributes:
        option: the name that its errors speak of, without `kafka.` in front.
        private: a key and its certificates; else the certificates to trust.
        location: path on every machine that runs the sink.
        kind: what `ssl.*store.type` says, in upper case, or "" for what the file is.
        password: of a PKCS12 store.
    """

    option: str
    private: bool
    location: str
    kind: str
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Translation:
    """What becomes of a query's settings.

    Attributes:
        settings: by librdkafka's names; may hold secrets, so left out of repr.
        stores: what the clients read beside, as the query runs over TLS.
        warnings: sentences for the log, without secrets.
    """

    settings: Mapping[str, str] = field(repr=False)
    stores: tuple[Store, ...] = ()
    warnings: tuple[str, ...] = ()


def translate(kafka: Mapping[str, str], transaction_timeout_ms: int | None = None) -> Translation:
    """From the names and values that users write to what librdkafka takes.

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
        judgement = judge(name, value)
        if judgement.fate is Fate.REFUSED:
            raise ConfigurationError(
                f"Option kafka.{name} cannot be used with this sink.",
                remedy=judgement.note + _NOTHING,
            )
        if judgement.warning:
            passed = "is ignored" if judgement.fate is Fate.IGNORED else "is adjusted"
            warnings.append(f"Option kafka.{name} {passed}: {judgement.note}")
        for target, taken in judgement.settings.items():
            if target == _LEVEL and name != _LEVEL:
                levels[name.split(".")[1]] = taken
            elif settings.setdefault(target, taken) != taken:
                raise _contradiction(given_as[target], name)
            given_as.setdefault(target, name)
    compression = settings.get("compression.type", "none")
    if compression in levels:
        settings.setdefault(_LEVEL, levels[compression])
    if transaction_timeout_ms is not None:
        warnings += [
            f"Option kafka.{name} is adjusted: {adjusted} is used, as long as the transaction "
            "lasts (eos.transaction.timeout.ms)."
            for name, adjusted in within_transaction(settings, transaction_timeout_ms).items()
        ]
    _check_times(settings)
    warnings += _security(settings, kafka.get(_JAAS))
    stores = tuple(_stores(kafka)) if settings.get("security.protocol", "").endswith("ssl") else ()
    return Translation(settings, stores, tuple(warnings))


def within_transaction(settings: Mapping[str, str], transaction_timeout_ms: int) -> dict[str, str]:
    """The waits of a producer that would outlast its transaction, cut: librdkafka refuses them."""
    return {
        name: str(transaction_timeout_ms)
        for name in _WITHIN_TRANSACTION
        if int(settings.get(name, 0)) > transaction_timeout_ms
    }


def _check_times(settings: dict[str, str]) -> None:
    # librdkafka refuses a longest wait that is shorter than the first; Java takes the longer.
    backoff = settings.get("reconnect.backoff.ms", _FIRST_BACKOFF_MS)
    longest = settings.get("reconnect.backoff.max.ms", _LONGEST_BACKOFF_MS)
    if int(longest) < int(backoff):
        if "reconnect.backoff.ms" in settings:
            settings["reconnect.backoff.max.ms"] = backoff
        else:
            settings["reconnect.backoff.ms"] = longest
    delivery, linger = settings.get("delivery.timeout.ms"), settings.get("linger.ms")
    if delivery and int(delivery) <= float(linger or 0):
        raise ConfigurationError(
            f"Option kafka.delivery.timeout.ms is {delivery}, not more than kafka.linger.ms: "
            "every record would be late.",
            remedy="Raise the one or lower the other." + _NOTHING,
        )


def _security(settings: dict[str, str], jaas: str | None) -> Iterator[str]:
    sasl = settings.get("security.protocol", "plaintext").startswith("sasl")
    if not sasl:
        unused = {n for n in settings if n.startswith("sasl.")} | ({_JAAS} if jaas else set())
        for name in unused:
            settings.pop(name, None)
        settings.pop(_UNSECURED, None)
        if unused:
            yield (
                "Options kafka.sasl.* are ignored: kafka.security.protocol is neither "
                "SASL_SSL nor SASL_PLAINTEXT, so nobody logs in."
            )
        return
    if "sasl.mechanism" not in settings:
        row = setting("sasl.mechanism")
        assert row is not None
        raise ConfigurationError(
            "Option kafka.sasl.mechanism is missing.", remedy=row.note + _NOTHING
        )
    mechanism = settings["sasl.mechanism"] = settings["sasl.mechanism"].strip().upper()
    if jaas is not None:
        _log_in(settings, mechanism, jaas)
    if mechanism != "OAUTHBEARER":
        if not settings.keys() >= {"sasl.username", "sasl.password"}:
            raise ConfigurationError(
                f"kafka.sasl.mechanism is {mechanism}, and no user and password are given.",
                remedy=f"Set kafka.{_JAAS}, or kafka.sasl.username and kafka.sasl.password."
                + _NOTHING,
            )
        return
    yield from _tokens(settings)


def _log_in(settings: dict[str, str], mechanism: str, jaas: str) -> None:
    try:
        login = read_jaas(jaas)
    except JaasError as wrong:
        raise ConfigurationError(
            f"Option kafka.{_JAAS} cannot be used: {wrong}.", remedy="Correct it." + _NOTHING
        ) from None
    if mechanism not in login.mechanisms:
        raise ConfigurationError(
            f"Option kafka.{_JAAS} is for {' or '.join(login.mechanisms)}, and "
            f"kafka.sasl.mechanism is {mechanism}.",
            remedy="Correct one of them." + _NOTHING,
        )
    for name, value in login.settings.items():
        if settings.setdefault(name, value) != value:
            raise _contradiction(name, _JAAS)


def _tokens(settings: dict[str, str]) -> Iterator[str]:
    if _TOKEN_URL in settings:
        missing = [
            f"kafka.{_OAUTH_CLIENT}.{part}"
            for part in ("id", "secret")
            if f"{_OAUTH_CLIENT}.{part}" not in settings
        ]
        if missing:
            raise ConfigurationError(
                f"A token is to come from kafka.{_TOKEN_URL}, and {' and '.join(missing)} is not "
                "given.",
                remedy=f"Set it, or clientId and clientSecret in kafka.{_JAAS}." + _NOTHING,
            )
        if settings[_TOKEN_URL].lower().startswith("http:"):
            yield (
                f"kafka.{_TOKEN_URL} is http, not https: the client's secret and the token cross "
                "the network for everybody to read."
            )
        settings["sasl.oauthbearer.method"] = "oidc"
        settings.pop(_UNSECURED, None)
        settings.pop("sasl.oauthbearer.config", None)
    elif settings.get(_UNSECURED) == "true":
        yield (
            "The query logs in with a token that nobody has signed "
            f"(no kafka.{_TOKEN_URL}): that is for tests only."
        )
    else:
        raise ConfigurationError(
            "kafka.sasl.mechanism is OAUTHBEARER, and nothing says where tokens come from.",
            remedy=f"Set kafka.{_TOKEN_URL}, kafka.{_OAUTH_CLIENT}.id and "
            f"kafka.{_OAUTH_CLIENT}.secret." + _NOTHING,
        )


def _stores(kafka: Mapping[str, str]) -> Iterator[Store]:
    for which, private in (("keystore", True), ("truststore", False)):
        location = kafka.get(f"ssl.{which}.location", "").strip()
        if location:
            yield Store(
                f"ssl.{which}.location",
                private,
                location,
                kafka.get(f"ssl.{which}.type", "").strip().upper(),
                kafka.get(f"ssl.{which}.password"),
            )


def _contradiction(one: str, other: str) -> ConfigurationError:
    return ConfigurationError(
        f"Options kafka.{one} and kafka.{other} mean the same and differ.",
        remedy="Remove one of them." + _NOTHING,
    )
