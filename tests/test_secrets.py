"""A canary in every secret setting: no error, warning, repr or log line of the sink shows it."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from pathlib import Path

import pytest

from eos_sink.errors import EosSinkError
from eos_sink.kafka.connection.settings import (
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config import SETTINGS, check_setting, is_secret
from eos_sink.kafka_config.acls import Permissions
from eos_sink.kafka_config.librdkafka_settings import PROPERTIES
from eos_sink.options import parse_options

CANARY = "canary7f3a"
SECRETS = sorted({n for n in [*PROPERTIES, *(row.name for row in SETTINGS)] if is_secret(n)})
# Texts that are wrong in ways of their own, so that each reader of them gets to complain.
SHAPES = (
    CANARY,
    f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----",
    f'org.apache.kafka.common.security.plain.PlainLoginModule required password="{CANARY}";',
    f"https://user:{CANARY}@127.0.0.1:1/token",
    f"principal={CANARY} lifeSeconds={CANARY}",
)
LOGINS = (
    {"kafka.security.protocol": "PLAINTEXT"},
    {"kafka.security.protocol": "SSL"},
    {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.username": "ann",
        "kafka.sasl.password": CANARY,
    },
    {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.enable.sasl.oauthbearer.unsecure.jwt": "true",
    },
    {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "eos.oauth.token.provider": "tests.test_secrets:make_token",
    },
)


def name_login(login: dict[str, str]) -> str:
    return " ".join(value for name, value in login.items() if "protocol" in name or "eos" in name)


def make_token() -> tuple[str, float, dict[str, str]]:
    """A token provider: the option names it."""
    return CANARY, time.time() + 60, {"cluster": CANARY}


def everything_of(options: dict[str, str], *, client: bool) -> str:
    """What is said while a query with these options starts, as far as it comes without a broker.

    Args:
        client: librdkafka has its say too.
    """
    said: list[str] = []
    try:
        parsed = parse_options(options)
        said += [repr(parsed), *parsed.warnings]
        settings = librdkafka_settings(parsed.kafka)
        connection = connection_settings(settings)
        arguments = kafka_python_settings(connection)
        said += [repr(arguments), str(arguments)]
        if client:
            producer = ConfluentProducer(
                {**settings, "debug": "conf,security"}, "id", 60_000, Permissions("", "log")
            )
            said.append(repr(producer))
            producer.close()
    except EosSinkError as error:
        said += [repr(error), str(error.data), "".join(traceback.format_exception(error))]
    return "\n".join(said)


@pytest.mark.parametrize("login", LOGINS, ids=name_login)
def test_no_secret_is_shown(
    login: dict[str, str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    # Without trusted authorities: reading those of the system takes a while each time.
    trust = {"kafka.ssl.ca.location": str(tmp_path)}
    options = {**login, **trust, "kafka.bootstrap.servers": "127.0.0.1:1", "eos.id": "q"}
    for name in SECRETS:
        for shape in SHAPES:
            shown = everything_of({**options, f"kafka.{name}": shape}, client=False)
            shown += repr(check_setting(name, shape)) + check_setting(name, shape).note
            assert CANARY not in shown, (name, shape)
    assert CANARY not in caplog.text


@pytest.mark.parametrize("login", LOGINS, ids=name_login)
def test_librdkafka_shows_no_secret(
    login: dict[str, str], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    options = {**login, "kafka.bootstrap.servers": "127.0.0.1:1", "eos.id": "q"}
    taken = {f"kafka.{n}": CANARY for n in SECRETS if check_setting(n, CANARY).settings}
    assert CANARY not in everything_of({**options, **taken}, client=True)
    keys = {n: v for n, v in taken.items() if "key" not in n}
    assert CANARY not in everything_of({**keys, **options}, client=True)
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())


def test_kafka_python_does_not_log_what_it_logs_in_with(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    options = parse_options({**LOGINS[2], "kafka.bootstrap.servers": "127.0.0.1:1", "eos.id": "q"})
    arguments = kafka_python_settings(connection_settings(librdkafka_settings(options.kafka)))
    with contextlib.suppress(EosSinkError):
        Wire(arguments, Deadline(0.1))
    assert "Starting KafkaAdminClient with configuration" in caplog.text
    assert CANARY not in caplog.text
