"""A canary in every secret setting: no error, warning, repr or log line of the sink shows it."""

from __future__ import annotations

import argparse
import contextlib
import logging
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from eos_sink import cli
from eos_sink.cli import batch_report, resolve_command, status_command
from eos_sink.cli.output import CommandError, Report, print_report
from eos_sink.cli.query_name import find_query
from eos_sink.errors import EosSinkError
from eos_sink.kafka.connection.settings import (
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.producer import ConfluentProducer
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Permissions
from eos_sink.kafka_config.check_setting import check_setting, is_secret
from eos_sink.kafka_config.java_settings import SETTINGS
from eos_sink.kafka_config.librdkafka_settings import PROPERTIES
from eos_sink.ops.observer import Observer
from eos_sink.ops.resolve import write_choice
from eos_sink.options import parse_options
from tests.fakes.admin import FakeAdmin
from tests.ops.operator import look as gather
from tests.protocol.driver import Driver, decide_and_die
from tests.protocol.world import World, late_attempt, options

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
        said += [repr(parsed), *parsed.cluster.client.warnings]
        settings = librdkafka_settings(parsed.cluster.client)
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
    arguments = kafka_python_settings(
        connection_settings(librdkafka_settings(options.cluster.client))
    )
    with contextlib.suppress(EosSinkError):
        Wire(arguments, Deadline(0.1))
    assert "Starting KafkaAdminClient with configuration" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize("login", [LOGINS[2], LOGINS[4]], ids=name_login)
def test_neither_a_query_nor_its_operator_shows_a_secret(
    login: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """A batch of which a part is lost, completed by an operator; a run that is fenced."""
    caplog.set_level(logging.DEBUG)
    place = f"s3a://key:{CANARY}@bucket/clicks?sig={CANARY}"
    given = {**login, "kafka.ssl.key.password": CANARY, "checkpointLocation": place, "eos.id": ""}
    world = World([], options=options(**given))
    old = Driver(world)
    said = [repr(world.options), repr(old.planner.plan())]
    decide_and_die(world)
    late_attempt(world, 0, 1)
    with pytest.raises(EosSinkError) as stop:
        old.planner.plan()
    said += [repr(stop.value), str(stop.value.data)]

    config = tmp_path / "client.properties"
    config.write_text(f"sasl.password={CANARY}\n")
    admin, query = FakeAdmin(world.cluster), world.options.names.query

    def parsed(*words: str) -> argparse.Namespace:
        server = ("--bootstrap-server", "kafka:9092", "--command-config", str(config))
        return cli.parser().parse_args([*words, *server])

    def look() -> list[Report]:
        found = Observer(admin, "eos-sink-", lambda: world.cluster.clock.ms).look(Deadline(30))
        return [
            status_command.make_report(found, parsed("status")),
            batch_report.report_batch(admin, parsed("status", query, "0")),
            status_command.make_report(found, parsed("status", "--transactions")),
            resolve_command.make_report(gather(admin, world.options.names)),
        ]

    reports, seen = look(), gather(admin, world.options.names)
    assert seen.decision is not None
    decision = replace(seen.decision, by_row=True)
    written = write_choice(admin, seen, decision, soon())
    reports += [
        resolve_command.make_report(seen, "accept", written.seq),
        *look(),
    ]
    for report in reports:
        for as_json in (False, True):
            print_report(report, as_json=as_json)
    with pytest.raises(CommandError) as refused:
        find_query(place.replace("clicks", "other"), [world.options.names])
    printed = capfd.readouterr().out
    records = world.cluster.read_committed(world.options.log_topic)
    said += [str(refused.value), printed, caplog.text, *map(repr, records)]
    said += [thread.name for thread in threading.enumerate()]
    shown = "\n".join(said)
    # It is looked for where it may be.
    for there in ("s3a://bucket/clicks", str(config), "--accept is carried out"):
        assert there in shown
    assert len(records) > 2
    assert CANARY not in shown


def soon() -> Deadline:
    return Deadline(30)
