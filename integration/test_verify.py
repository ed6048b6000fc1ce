"""`eos-sink verify` on a real Kafka: it sees what a reader gets, and reports no false finding."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.topic_scan import ReaderError, Scan, Source, Span
from eos_sink_lab.verify.row_identity import RowIdentifier
from eos_sink_lab.verify.verify_model import VerifyOptions
from eos_sink_lab.verify.verify_topic import verify_topic
from integration.messages import transaction
from integration.operator_commands import run_command
from integration.own_kafka import start_own_kafka
from integration.secured_query import command_config
from integration.topics import unique
from tests.snippets import ROOT, snippets_of

FINE, WRONG, REFUSED, INTERRUPTED = 0, 1, 2, 130
HOSTILE = b"<script>alert(1)</script>\x1b[2J\"'&\xff"
START_MS = 1_790_000_000_000


class Topic:
    """A topic of two partitions that real transactions are written to."""

    def __init__(self, kafka: KafkaCluster, **config: object) -> None:
        self.bootstrap = kafka.bootstrap_servers
        self.start_ms: int | None = START_MS
        self.name = unique("orders")
        # What is written bears a time that the usual retention would have ended.
        config = {"retention.ms": -1, **config}
        kafka.create_topic(self.name, partitions=2, config=config)

    def write(self, rows: Iterable[int | tuple[bytes, Any]], end: str = "commit") -> Producer:
        """One transaction, rows by their number in turns on both partitions; `end` is commit,
        abort or neither."""
        with transaction(self.bootstrap, end) as producer:
            for row in rows:
                key, value = (f"{row}".encode(), {"id": row}) if isinstance(row, int) else row
                number = value.get("id", 0) if isinstance(value, dict) else 0
                producer.produce(
                    self.name,
                    json.dumps(value).encode() if value is not None else None,
                    key=key,
                    partition=number % 2,
                    timestamp=self.start_ms + number * 1_000 if self.start_ms else 0,
                )
        return producer

    def verify(self, *more: str, expect: int = FINE, topic: str | None = None) -> str:
        """Runs the command in this process."""
        words = ["verify", topic or self.name, "--bootstrap-server", self.bootstrap]
        return run_command(*words, *more, expect=expect).said

    def sees(self, *more: str, expect: int = FINE) -> dict[str, Any]:
        said = self.verify("--json", "--quiet", *more, expect=expect)
        found: dict[str, Any] = json.loads(said)
        found["by_name"] = {check["name"]: check for check in found["checks"]}
        return found


NUMBERS = ("--identity", "json:id", "--number")


def outcome(found: dict[str, Any], name: str) -> tuple[str, int]:
    check = found["by_name"][name]
    return check["status"], check["found"]


@pytest.fixture
def topic(kafka: KafkaCluster) -> Topic:
    return Topic(kafka)


def test_a_whole_topic_is_good(topic: Topic) -> None:
    topic.write(range(50))
    topic.write(range(50, 60), "abort")
    topic.write(range(50, 100))
    found = topic.sees(*NUMBERS, "--expected", "100", "--order", "json:id", "--aborted")
    assert {check["status"] for check in found["checks"]} == {"good"}
    assert (found["rows"], sum(p["aborted"] for p in found["partitions"])) == (100, 10)
    assert "10 aborted rows" in " ".join(found["notes"])


def test_each_flaw_is_found_where_it_is(topic: Topic, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    topic.write([0, 1, 2, 3, 4, (b"4", {"id": 6})])  # 5 is lost
    topic.write([7, 8, 9, 2, (HOSTILE, {"id": 10}), (b"x", {"no": 1}), (b"y", None)])
    topic.write([11, 12], "abort")
    topic.write([11, 12, (b"4", {"id": 4})])  # a second time, and behind 6
    writer = topic.write([13], "neither")
    try:
        more = ("--order", "json:id", "--html", str(page), "--wait", "0.5")
        found = topic.sees(*NUMBERS, *more, expect=WRONG)
        assert outcome(found, "lost") == ("wrong", 1)
        assert found["by_name"]["lost"]["examples"] == ["5"]
        assert outcome(found, "doubled") == ("wrong", 2)
        two, four = sorted(found["by_name"]["doubled"]["examples"])
        assert (two.split(": ")[0], four.split(": ")[0]) == ("2", "4")
        assert two.count("0@") == four.count("0@") == 2
        assert outcome(found, "out of order") == ("wrong", 1)
        assert "has 4 after 6" in found["by_name"]["out of order"]["examples"][0]
        assert outcome(found, "without identity") == ("wrong", 2)
        assert outcome(found, "held up") == ("wrong", 1)
        (held,) = [p for p in found["partitions"] if p["behind"]]
        assert held["partition"] == 1
        assert held["held_up_by"].startswith("application-")
        told = topic.verify("--identity", "key", "--wait", "0.5", expect=WRONG)
        assert "\x1b" not in told
    finally:
        writer.abort_transaction(30)
    assert outcome(topic.sees(*NUMBERS, expect=WRONG), "held up") == ("good", 0)
    assert b"\x1b" not in page.read_bytes()


def test_a_hash_collision_is_not_reported(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """All identities have one hash in the first reading; the second one tells them apart."""
    monkeypatch.setattr(RowIdentifier, "_hash", lambda _self, _row: (7, 0))
    topic.write(range(20))
    found = topic.sees()
    assert outcome(found, "doubled") == ("good", 0)
    assert "20 identities" in " ".join(found["notes"])
    topic.write([3])
    assert outcome(topic.sees(expect=WRONG), "doubled") == ("wrong", 1)


@pytest.fixture
def letters(kafka: KafkaCluster) -> str:
    """A dead letter topic."""
    return Topic(kafka).name


def write_letters(topic: Topic, letters: str, *keys: bytes) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    headers: list[tuple[str, str | bytes | None]] = [
        ("__connect.errors.topic", topic.name.encode())
    ]
    for key in keys:
        producer.produce(letters, b"{}", key=key, headers=headers)
    assert producer.flush(30) == 0


def test_a_dead_letter_is_there_once_and_in_one_topic_only(topic: Topic, letters: str) -> None:
    topic.write([(b"ann", {"id": 0}), (b"bob", {"id": 1})])
    write_letters(topic, letters, b"zoe")
    how = ["--dead-letters", letters]
    assert outcome(topic.sees(*how), "dead letters") == ("good", 0)
    write_letters(topic, letters, *[b"zoe"] * 3)
    found = topic.sees(*how, expect=WRONG)
    assert outcome(found, "dead letters") == ("wrong", 3)
    write_letters(topic, letters, b"ann")
    found = topic.sees(*how, expect=WRONG)
    assert outcome(found, "dead letters") == ("wrong", 4)
    assert outcome(found, "doubled") == ("good", 0)
    shown = sorted(each.split(":")[0] for each in found["by_name"]["dead letters"]["examples"])
    assert shown == ["ann", "zoe"]


@pytest.mark.long
def test_what_retention_has_deleted_is_no_loss(kafka: KafkaCluster, topic: Topic) -> None:
    topic.write(range(40))
    kafka.delete_records(topic.name)
    topic.write(range(60, 100))
    found = topic.sees(*NUMBERS, "--partial")
    assert outcome(found, "lost") == ("not checked", 0)
    assert "2 of 2 partitions" in " ".join(found["notes"])
    assert topic.sees(*NUMBERS, expect=WRONG)["good"] is False
    topic.write(range(104, 110))
    assert outcome(topic.sees(*NUMBERS, expect=WRONG), "lost") == ("wrong", 4)
    found = topic.sees("--identity", "json:id", "--expected", "110", expect=WRONG)
    assert outcome(found, "lost") == ("wrong", 64)
    assert "retention" in found["by_name"]["lost"]["told"]


def test_a_beginning_that_is_deleted_while_it_is_read_is_an_error(
    kafka: KafkaCluster, topic: Topic
) -> None:
    topic.write(range(10))
    kafka.delete_records(topic.name)
    topic.write(range(10))
    scan = Scan(Source(topic.bootstrap, topic.name), committed=True, stall_s=30)
    try:
        with pytest.raises(ReaderError, match="offset 0"):
            list(scan.read([Span(0, 0, 10)]))
    finally:
        scan.close()


def test_a_gap_in_a_compacted_topic_proves_nothing(kafka: KafkaCluster) -> None:
    topic = Topic(kafka, **{"cleanup.policy": "compact"})
    topic.write([0, 1, 5])
    assert outcome(topic.sees(*NUMBERS), "lost") == ("no proof", 3)


@pytest.mark.long
def test_a_part_of_a_topic_is_read(topic: Topic) -> None:
    topic.start_ms = None
    for first in (0, 20, 40):
        topic.write(range(first, first + 20))
    moment = datetime.now(timezone.utc).isoformat()
    for first in (60, 80):
        topic.write(range(first, first + 20))
    parts = (("--last", "22", 40), ("--since", moment, 40), ("--partitions", "1", 50))
    for option, value, rows in parts:
        part = topic.sees(*NUMBERS, option, value, "--partial")
        assert (part["rows"], outcome(part, "lost")) == (rows, ("not checked", 0))
        topic.sees(*NUMBERS, option, value, expect=WRONG)
    assert "and no 7" in topic.verify("--partitions", "1,7", expect=REFUSED)


def test_an_empty_topic_and_one_that_is_not_there(topic: Topic, tmp_path: Path) -> None:
    assert "no row" in topic.verify()
    found = topic.sees(*NUMBERS, "--order", "json:id", expect=WRONG)
    assert {outcome(found, name) for name in ("lost", "out of order")} == {("not checked", 0)}
    topic.sees(*NUMBERS, "--order", "json:id", "--partial")
    keys = tmp_path / "keys.txt"
    keys.touch()
    assert outcome(topic.sees("--expected-from", str(keys), expect=WRONG), "lost")[0] != "good"
    topic.verify("--identity", "json:id", "--expected", "3", expect=WRONG)
    said = topic.verify(topic=f"{topic.name}s", expect=REFUSED)
    assert "does not exist" in said
    assert topic.name in said.replace(f"{topic.name}s", "")
    admin = AdminClient({"bootstrap.servers": topic.bootstrap})
    assert f"{topic.name}s" not in admin.list_topics(timeout=30).topics


class Writes:
    """A meter that writes as soon as the reading has begun."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act

    def step(self, what: str, offsets: int) -> None:
        if self._act is not None:
            act, self._act = self._act, None
            act()

    def at(self, offsets: int, rows: int) -> None: ...


def test_a_gap_that_is_filled_while_the_topic_grows_is_none(topic: Topic) -> None:
    def question(wait_s: float) -> VerifyOptions:
        source = Source(topic.bootstrap, topic.name)
        return VerifyOptions(source, "json:id", numbered=True, wait_s=wait_s)

    topic.write([0, 1, 2, 4, 6])
    result = verify_topic(question(0.5), Writes(lambda: topic.write([3, 9])), lambda _: {})
    assert [check.found for check in result.checks if check.name == "lost"] == [1]
    assert [check.examples for check in result.checks if check.name == "lost"] == [("5",)]


def test_partitions_that_are_added_while_a_topic_is_read_end_the_command(topic: Topic) -> None:
    topic.write(range(4))
    admin = AdminClient({"bootstrap.servers": topic.bootstrap})

    def add_partitions() -> None:
        admin.create_partitions([NewPartitions(topic.name, 4)])[topic.name].result(30)

    options = VerifyOptions(Source(topic.bootstrap, topic.name), "key", follow_s=60)
    with pytest.raises(ReaderError, match="2, 3"):
        verify_topic(options, Writes(add_partitions), lambda _: {})


@contextmanager
def followed(topic: Topic, until: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A process that follows the topic, once it has told of so many rows."""
    words = ["verify", topic.name, "--bootstrap-server", topic.bootstrap, "--follow", "600"]
    command = [sys.executable, "-m", "eos_sink", *words, *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        assert any(until in line for line in process.stderr)
        yield process


@pytest.mark.long
def test_brokers_that_go_away_while_a_topic_is_read_end_the_command() -> None:
    with start_own_kafka() as kafka:
        topic = Topic(kafka)
        topic.write(range(4))
        with followed(topic, "4 rows", "--stall-timeout", "3") as process:
            kafka.brokers[0].kill()
            _, err = process.communicate(timeout=120)
    assert process.returncode == REFUSED, err
    assert "Traceback" not in err
    assert topic.name in err
    assert topic.bootstrap in err
    assert topic.bootstrap in topic.verify("--stall-timeout", "1", expect=REFUSED)


def test_a_reader_needs_read_on_the_topic_and_nothing_else(
    secured: KafkaCluster, tmp_path: Path
) -> None:
    topic = Topic(secured)
    topic.write(range(4))
    options = secured.access.options("ann")
    login = command_config(tmp_path, options)
    topic.bootstrap = options["kafka.bootstrap.servers"]
    secured.access.allow("ann", Acl("Describe", Resource.TOPIC, topic.name))
    said = topic.verify(*login, expect=REFUSED)
    assert f"lacks Read on topic {topic.name}" in said
    assert "kafka-acls" in said
    secured.access.allow("ann", Acl("Read", Resource.TOPIC, topic.name))
    found = topic.sees(*login, *NUMBERS)
    assert found["rows"] == 4
    assert "DescribeConfigs" in " ".join(found["notes"])


def test_ctrl_c_reports_what_was_read(topic: Topic) -> None:
    topic.write([*range(10), 3])
    with followed(topic, "11 rows", "--json") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, err
    found = json.loads(out)
    assert (found["interrupted"], found["rows"]) == (True, 11)
    checks = {check["name"]: check["status"] for check in found["checks"]}
    assert (checks["lost"], checks["doubled"]) == ("not checked", "no proof")


def test_the_commands_of_the_page_run(topic: Topic, tmp_path: Path) -> None:
    rows = [(b"a" if n % 2 else b"b", {"id": n, "seq": n // 2}) for n in range(1_000)]
    topic.write(rows)
    (tmp_path / "keys.txt").write_text("a\nb\n" * 500)
    ran = 0
    for snippet in snippets_of(ROOT / "docs" / "verify.md"):
        for command in snippet.commands if snippet.language == "sh" else ():
            words = shlex.split(command)
            words[words.index("orders")] = topic.name
            for file in ("keys.txt", "orders.html"):
                words = [str(tmp_path / file) if word == file else word for word in words]
            words[words.index("localhost:9092")] = topic.bootstrap
            run_command(*words[1:])
            ran += 1
    assert ran == 4
    assert (tmp_path / "orders.html").exists()
