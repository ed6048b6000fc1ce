"""`eos-sink doctor` on real brokers: a healthy one, one set up wrong, a secured one, and none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Unseen
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.options import parse_options
from eos_sink_lab.testing import KafkaCluster, java_home
from integration.conftest import MakeRun
from integration.kafka_tools import carry_out
from integration.operator_commands import NOT_SEEN, Printed, run_command
from integration.own_kafka import start_own_kafka
from integration.secured_query import SecuredQuery
from integration.topics import unique
from tests.kafka_acls_command import run_kafka_acls
from tests.snippets import ROOT, snippets_of

PAGE = ROOT / "docs" / "commands.md"

SOON_S = 20
FINE, FAILS, CANNOT_RUN = 0, 1, 2


class Output(Printed):
    """What the command printed."""

    @property
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["findings"]
        return found

    def of(self, level: str) -> dict[str, str]:
        """The facts found at this level, by check; several of one check are joined."""
        found: dict[str, str] = {}
        for each in self.findings:
            if each["level"] == level:
                found[each["check"]] = "; ".join(
                    filter(None, (found.get(each["check"]), each["what"]))
                )
        return found

    def commands(self, *checks: str) -> list[str]:
        return [
            line
            for each in self.findings
            for line in each["remedy"]
            if each["check"] in checks and line.startswith("kafka-")
        ]


def doctor(*words: str, code: int | None = None) -> Output:
    printed = run_command("doctor", *words, expect=code)
    return Output(printed.code, printed.out, printed.err)


def test_on_a_healthy_broker_nothing_fails(kafka: KafkaCluster, run: MakeRun) -> None:
    topic, prefix, log = (unique(name) for name in ("rows", "own", "log"))
    kafka.create_topic(topic, partitions=2)
    query = run(kafka, topic=topic, eos_log_topic=log, eos_transactional_id_prefix=f"{prefix}-")
    query.write(value=["a"])
    words = ["--bootstrap-server", kafka.bootstrap_servers, "--log-topic", log]
    output = doctor(*words, "--prefix", f"{prefix}-", "--json", code=FINE)
    assert output.of("failure") == output.of("not seen") == {}
    # One broker: nothing has a second copy.
    assert set(output.of("warning")) == {"topic", "internal topics", "decision log"}
    # The decided topic is known from the log.
    assert topic in output.of("warning")["topic"]
    assert "1 query, all readable" in output.of("ok")["log records"]
    text = doctor(*words, "--prefix", f"{prefix}-", "--topic", topic, code=FINE)
    assert "0 failure" not in text.out
    assert " ok, " in text.out.splitlines()[-1]


@pytest.fixture(scope="module")
def odd() -> Iterator[KafkaCluster]:
    """A broker with settings that doctor reports."""
    properties = {
        "auto.create.topics.enable": "true",
        "transaction.max.timeout.ms": 600_000,
        "group.max.session.timeout.ms": 300_000,
        "transaction.partition.verification.enable": "false",
        "transactional.id.expiration.ms": 3_600_000,
    }
    with start_own_kafka(properties=properties) as cluster:
        yield cluster


def set_up_wrong(cluster: KafkaCluster, directory: Path) -> Path:
    """Create topics; return the options of a query that uses them."""
    strict, log, missing = (unique(name) for name in ("strict", "log", "none"))
    servers = cluster.bootstrap_servers
    cluster.create_topic(strict, config={"min.insync.replicas": "2"})
    cluster.create_topic(log, partitions=3)
    file = directory / "query.properties"
    file.write_text(
        f"kafka.bootstrap.servers={servers}\neos.id=odd\neos.log.topic={log}\n"
        f"eos.destinations={strict}:0-1, {missing}\nkafka.metrics.num.samples=3\n"
    )
    return file


def test_each_fault_of_a_misconfigured_broker_is_reported(
    odd: KafkaCluster, tmp_path: Path
) -> None:
    words = ["--options", str(set_up_wrong(odd, tmp_path)), "--json"]
    output = doctor(*words, code=FAILS)
    failed = output.of("failure")
    assert "transaction.max.timeout.ms=600000" in failed["transaction timeout"]
    assert "group.max.session.timeout.ms=300000" in failed["group session"]
    assert "has 3 partitions instead of 8" in failed["decision log"]
    assert "cleanup.policy=delete" in failed["decision log"]
    assert "has 1 copy and min.insync.replicas=2" in failed["topic"]
    assert "eos.destinations declares partition 1" in failed["topic"]
    assert "does not exist" in failed["topic"]
    assert "false on" in failed["verification"]
    warned = output.of("warning")
    assert {"expiry", "decision log", "options"} <= set(warned)
    assert warned["options"].startswith("Option kafka.metrics.num.samples")
    shorter = doctor(*words, "--transaction-timeout-ms", "240000")
    assert not {"transaction timeout", "group session"} & set(shorter.of("failure"))


@pytest.mark.long
def test_the_commands_repair_what_needs_no_restart(odd: KafkaCluster, tmp_path: Path) -> None:
    words = ["--options", str(set_up_wrong(odd, tmp_path)), "--json"]
    for command in doctor(*words, code=FAILS).commands("topic", "decision log", "verification"):
        carry_out(command)
    repaired = doctor(*words, code=FAILS)
    assert set(repaired.of("failure")) == {"transaction timeout", "group session"}
    assert "verification" in repaired.of("ok")
    doctor(*words, "--transaction-timeout-ms", "240000", code=FINE)


def test_foreign_records_in_the_log_are_reported(odd: KafkaCluster) -> None:
    log = unique("log")
    odd.create_topic(log, partitions=8, config={"cleanup.policy": "compact"}, timeout_s=SOON_S)
    producer = Producer({"bootstrap.servers": odd.bootstrap_servers})
    producer.produce(log, b"hello", key=b"other-app")
    producer.produce(log, b"hello", key=b"eos-sink-query-0123456789")
    producer.produce(log, b'{"format": 99}', key=b"eos-sink-newer-0123456789")
    assert producer.flush(SOON_S) == 0
    output = doctor("--bootstrap-server", odd.bootstrap_servers, "--log-topic", log, "--json")
    assert "'other-app'" in output.of("warning")["log records"]
    failed = output.of("failure")["log records"]
    assert "query-0123456789" in failed
    assert "newer-0123456789" in failed
    assert "format 99" in failed


def options_file(query: SecuredQuery, directory: Path) -> str:
    file = directory / "query.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in query._given.items() if value))
    return str(file)


def test_on_a_secured_cluster_a_missing_permission_hides_no_other_finding(
    secured: KafkaCluster, tmp_path: Path
) -> None:
    with closing(SecuredQuery(secured, tmp_path, eos_log_topic=unique("log"))) as query:
        query.plan()
        words = ["--options", options_file(query, tmp_path), "--json"]
        output = doctor(*words, code=NOT_SEEN)
        # A query may not read the cluster's settings, and need not.
        hidden = output.of("not seen")
        assert {"controller", "clock", "transaction timeout", "group session"} <= set(hidden)
        assert "DescribeConfigs on the cluster" in hidden["group session"]
        assert "permissions" in output.of("ok")
        for acl in query.needs[:-1]:  # Create is needed for a log that is not there.
            query.revoke(acl)
            lacking = doctor(*words, code=FAILS)
            assert str(acl) in lacking.of("failure")["permissions"]
            assert "decision log" in {
                **lacking.of("ok"),
                **lacking.of("warning"),
                **lacking.of("not seen"),
            }
            for command in lacking.commands("permissions"):
                assert f"User:{query.user}" in command
                run_kafka_acls(command, secured.access)
            assert acl in query.access.permissions(query.user)
        # The commands of the findings "not seen" show everything.
        for command in output.commands(*hidden):
            run_kafka_acls(command, secured.access)
        assert doctor(*words, code=FINE).of("not seen") == {}


@pytest.mark.long
def test_a_log_that_may_not_be_created_is_reported_with_the_command_that_creates_it(
    secured: KafkaCluster, tmp_path: Path
) -> None:
    with closing(SecuredQuery(secured, tmp_path, eos_log_topic=unique("log"))) as query:
        words = ["--options", options_file(query, tmp_path)]
        query.revoke(Acl("Create", Resource.TOPIC, query.options.log_topic))
        output = doctor(*words, "--json", code=FAILS)
        assert "cannot be created" in output.of("failure")["decision log"]
        (command,) = output.commands("decision log")
        carry_out(
            command.replace(" --command-config admin.properties", "").replace(
                query.options.cluster.servers, secured.bootstrap_servers
            )
        )
        doctor(*words, code=NOT_SEEN)


@pytest.mark.long
def test_a_broker_that_cannot_be_reached_from_here_hides_no_other_finding(
    cluster: KafkaCluster,
) -> None:
    """The others answer and know its address; no check waits for it for long."""
    cluster.create_topic("three", partitions=6)
    words = ["--bootstrap-server", cluster.bootstrap_servers, "--topic", "three", "--json"]
    assert "3 brokers answer" in doctor(*words, code=FINE).of("ok")["brokers"]
    far = cluster.brokers[-1]
    far.link.cut()
    try:
        output = doctor(*words, "--timeout", "60", code=FAILS)
    finally:
        far.link.heal()
    assert set(output.of("failure")) == {"brokers"}, output.of("failure")
    assert f"broker {far.id} cannot be reached at" in output.of("failure")["brokers"]
    assert {"versions", "controller", "topic", "group session"} <= set(output.of("ok"))


@pytest.mark.long
def test_a_silent_controller_has_refused_no_decision_log(cluster: KafkaCluster) -> None:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": "t", "eos.id": "q"}
    with closing(ConfluentAdmin(parse_options(given).cluster)) as admin:
        admin.describe_brokers(Deadline(SOON_S))
        for each in cluster.brokers:
            each.link.cut()
        try:
            assert isinstance(admin.refusal_to_create_log(3, Deadline(SOON_S)), Unseen)
        finally:
            for each in cluster.brokers:
                each.link.heal()


@pytest.mark.long
def test_inside_spark_it_looks_at_the_session_and_its_executors(
    kafka: KafkaCluster, tmp_path: Path, spark_classes: Path
) -> None:
    """The command of docs/commands.md, with options as conf/query.properties has them."""
    topic = unique("rows")
    kafka.create_topic(topic)
    text = (ROOT / "conf" / "query.properties").read_text()
    text = text.replace("topic=readings", f"topic={topic}")
    file = tmp_path / "query.properties"
    file.write_text(text.replace("localhost:9092", kafka.bootstrap_servers))
    (snippet,) = (s for s in snippets_of(PAGE) if "spark-submit" in s.text)
    (command,) = snippet.commands
    options = "--master 'local[2]' --conf spark.speculation=true --conf spark.ui.enabled=false"
    command = command.replace("spark-submit", f"spark-submit {options}", 1)
    command = command.replace("conf/query.properties", str(file))
    bin_directory = Path(sys.executable).parent
    done = subprocess.run(
        ["sh", "-c", f"{command} --json"],
        cwd=tmp_path,
        env={
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "PATH": f"{bin_directory}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    output = Output(done.returncode, done.stdout, done.stderr)
    assert output.code == FAILS, output
    assert output.of("failure") == {"Spark settings": "spark.speculation=true"}
    assert "finds kafka-eos" in output.of("ok")["format"]
    assert sys.executable in output.of("ok")["executors"]
    assert "all brokers reached" in output.of("ok")["executors"]


def test_the_commands_of_the_page_run(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic = unique("rows")
    kafka.create_topic(topic)
    file = tmp_path / "query.properties"
    text = (ROOT / "conf" / "query.properties").read_text().replace("=readings\n", f"={topic}\n")
    file.write_text(text.replace("localhost:9092", kafka.bootstrap_servers))
    commands = [c for s in snippets_of(PAGE) for c in s.commands if c.startswith("eos-sink doctor")]
    assert len(commands) == 2
    here = {
        "localhost:9092": kafka.bootstrap_servers,
        "conf/query.properties": str(file),
        "readings": topic,
    }
    for command in commands:
        doctor(*(here.get(word, word) for word in command.split()[2:]), code=FINE)
