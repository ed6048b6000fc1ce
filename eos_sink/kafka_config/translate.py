"""All settings of a query together: librdkafka's settings, the stores to read, the warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eos_sink.kafka_config.check_setting import check_setting
from eos_sink.kafka_config.cluster_config import Store, Translation, cap_timeouts
from eos_sink.kafka_config.java_settings import Handling
from eos_sink.kafka_config.login import log_in, make_error, set_once
from eos_sink.kafka_config.token_source import HANDLERS, PROVIDER

_LEVEL = "compression.level"
_LEAST_DELIVERY_MS = 1_000
# librdkafka trusts all authorities that are given, and Python one; of two keys each client may take
# another one.
_AUTHORITIES = ("ssl.ca.location", "ssl.ca.pem", "ssl.truststore.certificates")
_KEYS = ("ssl.key.location", "ssl.key.pem", "ssl.keystore.key")
_CERTIFICATES = (
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.keystore.certificate.chain",
)
_ONE_OF = (
    ("ssl.truststore.location", *_AUTHORITIES),
    ("ssl.keystore.location", *_KEYS),
    ("ssl.keystore.location", *_CERTIFICATES),
)
_BACKOFF, _MAX_BACKOFF = "reconnect.backoff.ms", "reconnect.backoff.max.ms"


def translate(kafka: Mapping[str, str], transaction_timeout_ms: int | None = None) -> Translation:
    """Translate the names and values that users write to those of librdkafka.

    Args:
        kafka: names in lower case, without `kafka.` in front; and option `PROVIDER`, if given.
        transaction_timeout_ms: of the tasks' transactions, for the warnings.

    Raises:
        ConfigurationError: one cannot be honoured, or two contradict each other; without secrets.
    """
    warnings: list[str] = []
    settings: dict[str, str] = {}
    given_as: dict[str, str] = {}
    levels: dict[str, str] = {}
    for name, value in kafka.items():
        if name == PROVIDER or (name in HANDLERS and PROVIDER in kafka):
            continue
        checked = check_setting(name, value)
        if checked.handling is Handling.REFUSED:
            raise make_error(f"Option kafka.{name} cannot be used with this sink.", checked.note)
        if checked.warning:
            done = "ignored" if checked.handling is Handling.IGNORED else "adjusted"
            warnings.append(f"Option kafka.{name} is {done}: {checked.note}")
        for target, taken in checked.settings.items():
            if target == _LEVEL and name != _LEVEL:
                levels[name.split(".")[1]] = taken
            else:
                set_once(settings, target, taken, given_as.setdefault(target, name), name)
    compression = settings.get("compression.type", "none")
    if compression in levels:
        settings.setdefault(_LEVEL, levels[compression])
    if transaction_timeout_ms is not None:
        warnings += [
            f"Option kafka.{given_as[name]} is adjusted: {capped} is used, as long as the "
            "transaction lasts (eos.transaction.timeout.ms)."
            for name, capped in cap_timeouts(settings, transaction_timeout_ms).items()
        ]
    _check_times(settings, given_as)
    _check_tls(kafka)
    about_login, tokens = log_in(settings, kafka)
    stores = tuple(_stores(kafka)) if settings.get("security.protocol", "").endswith("ssl") else ()
    return Translation(settings, stores, (*warnings, *about_login), tokens)


def _check_times(settings: dict[str, str], given_as: Mapping[str, str]) -> None:
    # librdkafka refuses a maximum below the first backoff; Java takes the longer one. The numbers
    # are librdkafka's defaults.
    backoff, longest = settings.get(_BACKOFF, "100"), settings.get(_MAX_BACKOFF, "10000")
    if int(longest) < int(backoff):
        settings[_BACKOFF] = settings[_MAX_BACKOFF] = backoff if _BACKOFF in settings else longest
    delivery = settings.get("delivery.timeout.ms")
    own, linger = (given_as.get(each, each) for each in ("delivery.timeout.ms", "linger.ms"))
    if delivery and int(delivery) <= float(settings.get("linger.ms", 0)):
        raise make_error(
            f"Option kafka.{own} is {delivery}, not more than kafka.{linger}: every record would "
            "be late.",
            "Raise the one or lower the other.",
        )
    if delivery and 0 < int(delivery) < _LEAST_DELIVERY_MS:
        raise make_error(
            f"Option kafka.{own} is {delivery}: no broker acknowledges a record reliably in less "
            "than a second.",
            f"Raise it to {_LEAST_DELIVERY_MS} or more, or remove it.",
        )


def _check_tls(kafka: Mapping[str, str]) -> None:
    for names in _ONE_OF:
        given = [name for name in names if kafka.get(name, "").strip()]
        if len(given) > 1:
            raise make_error(
                f"Options kafka.{given[0]} and kafka.{given[1]} are both set, and the two Kafka "
                "clients would not use the same one.",
                "Remove one of them.",
            )


def _stores(kafka: Mapping[str, str]) -> Iterator[Store]:
    for which, private in (("keystore", True), ("truststore", False)):
        option = f"ssl.{which}.location"
        if location := kafka.get(option, "").strip():
            kind = kafka.get(f"ssl.{which}.type", "").strip().upper()
            yield Store(option, private, location, kind, kafka.get(f"ssl.{which}.password"))
