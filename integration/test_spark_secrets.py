"""Secrets of a real Spark job: in no log, no error, no plan, no event log, nowhere in Kafka."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eos_sink.identity import DEFAULT_PREFIX
from eos_sink.kafka.connection.oauth import make_unsigned_token
from eos_sink.kafka_config.acls import Permissions
from eos_sink.kafka_config.properties_file import read_properties
from eos_sink_lab.testing import KafkaCluster, java_home
from integration.checker import read_topic
from integration.event_log import EventLog
from integration.short_tokens import USER_VARIABLE
from integration.spark_program import CLASSES_VARIABLE
from integration.topics import unique
from tests.snippets import ROOT

LOG = "__eos_sink_log"
REDACTION = "spark.redaction.regex"
# A session's setting that has no reader: only its name counts.
SETTING = "spark.datasource.other.kafka.ssl.keystore.key"
PATIENCE_S = 300

PROGRAM = """
import json, sys
from dataclasses import asdict
from pyspark.errors import PySparkException
import eos_sink
from integration.spark_program import spark_session

given = json.loads(sys.argv[1])
spark = spark_session(conf={**given["conf"], "spark.log.level": "INFO"})
eos_sink.register(spark)

def stream(checkpoint, options):
    lines = spark.readStream.text(given["input"])
    writer = lines.writeStream.format("kafka-eos").options(**options)
    query = writer.option("checkpointLocation", given["home"] + checkpoint).start()
    query.processAllAvailable()
    query.explain(True)
    print(query.lastProgress, query.status, query)
    status = eos_sink.status(query)
    assert status.outcome == "committed", status
    print(status, asdict(status), status._repr_html_())
    query.stop()

stream("/good", given["scram"])
stream("/provider", given["provider"])
for bad in given["refused"]:
    try:
        stream("/bad", bad)
    except PySparkException as error:
        print("REFUSED", error)
    else:
        raise AssertionError("it was not refused")
rows = spark.createDataFrame([("batch",)], "value string")
rows.write.format("kafka-eos").mode("append").options(**given["inline"]).save()
spark.stop()
"""


@pytest.fixture(scope="module")
def redaction() -> str:
    """The setting that docs/connect.md and conf/spark-defaults.conf give."""
    (found,) = [
        {entry.value for entry in read_properties(text) if entry.name == REDACTION}
        for text in [(ROOT / "conf" / "spark-defaults.conf").read_text()]
    ]
    (value,) = found
    assert f"{REDACTION} {value}" in (ROOT / "docs" / "connect.md").read_text()
    return value


class Job:
    """A job with a canary in each secret."""

    def __init__(self, kafka: KafkaCluster, home: Path) -> None:
        self.kafka, self.home = kafka, home
        self.user = unique("user")
        self.topic = unique("out")
        self.password, self.setting = (f"canary{uuid.uuid4().hex}" for _ in range(2))
        access = kafka.access
        access.add_user(self.user, self.password)
        needs = Permissions(DEFAULT_PREFIX, LOG)
        log = (needs.log_read, needs.log_write, needs.log_create)
        access.allow(self.user, *needs.topic(self.topic), needs.transactions, needs.group, *log)
        kafka.create_topic(self.topic)
        mine = access.authority.identity(self.user)
        self.key = mine.key.read_text()
        scram = {**access.options(self.user), "topic": self.topic}
        tls = access.options(self.user, "TLS")
        inline = {
            "kafka.bootstrap.servers": tls["kafka.bootstrap.servers"],
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": access.ca.read_text(),
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.key": self.key,
            "kafka.ssl.keystore.certificate.chain": mine.chain.read_text(),
            "topic": self.topic,
            "eos.id": self.topic,
        }
        jaas = "kafka.sasl.jaas.config"
        bearer = {**access.options(self.user, "OAUTHBEARER"), "topic": self.topic}
        del bearer[jaas]
        # All tokens of the job start like this one.
        claims = {"sasl.oauthbearer.config": f"principal={self.user}"}
        self.token = make_unsigned_token(claims, 0)[0].split(".")[1][:32]
        self.given: dict[str, Any] = {
            "scram": scram,
            "provider": {**bearer, "eos.oauth.token.provider": "integration.short_tokens:make"},
            "refused": [
                {**scram, "topic": "not-permitted"},
                {**scram, jaas: scram[jaas].replace("username", "usrname")},
                {**scram, "kafka.sasl.mechanism": "PLAIN-TEXT"},
                {**inline, "kafka.ssl.keystore.certificate.chain": self.key},
            ],
            "inline": inline,
        }

    def run(self, conf: dict[str, str]) -> None:
        source = self.home / "input"
        source.mkdir()
        (source / "1.txt").write_text("stream\n")
        (self.home / "program.py").write_text(PROGRAM)
        logs = EventLog(self.home / "events")
        given = {
            **self.given,
            "conf": {**logs.conf, SETTING: self.setting, **conf},
            "input": str(source),
            "home": str(self.home / "checkpoints"),
        }
        done = subprocess.run(
            [sys.executable, str(self.home / "program.py"), json.dumps(given)],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "JAVA_HOME": str(java_home()),
                USER_VARIABLE: self.user,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        (self.home / "stdout").write_text(done.stdout)
        (self.home / "stderr").write_text(done.stderr)
        assert done.returncode == 0, done.stderr[-4000:]

    def places(self, secret: str) -> list[str]:
        """Where a secret is found, plain or in base 64, in a file of the job or in the log."""
        forms = [secret.encode(), *_in_base_64(secret)]
        places = {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in self.home.rglob("*")
            if path.is_file()
        }
        places.update(self._decision_log())
        return [place for place, held in places.items() if any(form in held for form in forms)]

    def _decision_log(self) -> Iterator[tuple[str, bytes]]:
        records = read_topic(self.kafka.bootstrap_servers, LOG)
        assert any(self.topic.encode() in (record.value or b"") for record in records)
        for record in records:
            place = f"{LOG}[{record.partition}]@{record.offset}"
            yield place, (record.key or b"") + (record.value or b"")


def _in_base_64(secret: str) -> list[bytes]:
    """At each of the three places where it can begin, without what depends on its neighbours."""
    return [
        base64.b64encode(b"x" * shift + secret.encode())[4 if shift else 0 : -4]
        for shift in range(3)
    ]


@pytest.mark.long
def test_no_secret_is_left_anywhere(
    secured: KafkaCluster, spark_classes: Path, redaction: str, tmp_path: Path
) -> None:
    assert os.environ[CLASSES_VARIABLE] == str(spark_classes)
    job = Job(secured, tmp_path)
    job.run({REDACTION: redaction})
    seen = read_topic(secured.bootstrap_servers, job.topic).values()
    assert sorted(seen) == ["batch", "stream", "stream"]
    said = (tmp_path / "stdout").read_text()
    assert said.count("REFUSED") == len(job.given["refused"])
    assert "== Physical Plan ==" in said
    # The search finds what is there.
    assert {"stdout", "stderr"} <= set(job.places("not-permitted"))
    assert {"events"} <= {place.split("/")[0] for place in job.places(str(tmp_path / "input"))}
    for secret in (job.password, job.token, job.setting, *job.key.splitlines()[1:-1]):
        assert job.places(secret) == []


@pytest.mark.long
def test_without_the_setting_spark_writes_a_key_into_its_event_log(
    secured: KafkaCluster, spark_classes: Path, tmp_path: Path
) -> None:
    """What docs/connect.md warns of; if Spark mends it, the page can be shorter."""
    assert os.environ[CLASSES_VARIABLE] == str(spark_classes)
    job = Job(secured, tmp_path)
    job.run({})
    assert any(place.startswith("events") for place in job.places(job.setting))
    assert job.places(job.password) == []
