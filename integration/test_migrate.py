"""A program changed as `eos-sink migrate` says goes on where Spark's own sink has stopped."""

from __future__ import annotations

import runpy
from pathlib import Path

from pyspark.sql import SparkSession

from eos_sink import cli
from eos_sink_lab.testing import KafkaCluster
from integration.checker import assert_each_once, read_topic

PROGRAM = """\
from pyspark.sql import SparkSession

PRODUCER = {{
    "kafka.linger.ms": 5,
    "kafka.max.request.size": "2000000",
    "kafka.metric.reporters": "com.example.Reporter",
    "kafka.compression.type": "lz4",
}}
spark = SparkSession.builder.getOrCreate()
(
    spark.readStream.text("{home}/in")
    .writeStream.format("kafka")
    .option("kafka.bootstrap.servers", "{brokers}")
    .option("topic", "{topic}")
    .option("kafka.acks", "1")
    .option("kafka.enable.idempotence", "false")
    .options(**PRODUCER)
    .option("checkpointLocation", "{home}/checkpoint")
    .trigger(availableNow=True)
    .start()
    .awaitTermination()
)
"""

# What the command says to remove.
REFUSED = (
    '    .option("kafka.acks", "1")\n',
    '    .option("kafka.enable.idempotence", "false")\n',
)


def test_a_migrated_program_goes_on_from_its_checkpoint(
    both: SparkSession, kafka: KafkaCluster, tmp_path: Path
) -> None:
    kafka.create_topic("migrated", partitions=2)
    (tmp_path / "in").mkdir()
    old, new = tmp_path / "job.py", tmp_path / "new.py"
    given = {"home": tmp_path, "brokers": kafka.bootstrap_servers, "topic": "migrated"}
    # Spark's own sink makes its producer of all of them; this reporter class is nowhere.
    reporter = '    "kafka.metric.reporters": "com.example.Reporter",\n'
    old.write_text(PROGRAM.replace(reporter, "").format(**given))
    feed(tmp_path, 0)
    runpy.run_path(str(old))

    old.write_text(PROGRAM.format(**given))
    assert cli.main(["migrate", str(old)]) == 1
    text = old.read_text().replace('format("kafka")', 'format("kafka-eos")')
    for refused in REFUSED:
        text = text.replace(refused, "")
    new.write_text(text)
    assert cli.main(["migrate", str(new)]) == 0
    feed(tmp_path, 1)
    runpy.run_path(str(new))

    rows = read_topic(kafka.bootstrap_servers, "migrated")
    assert_each_once(rows, [f"{file}-{n}" for file in (0, 1) for n in range(50)])


def feed(home: Path, file: int) -> None:
    rows = "".join(f"{file}-{n}\n" for n in range(50))
    (home / "in" / f"{file}.txt").write_text(rows)
