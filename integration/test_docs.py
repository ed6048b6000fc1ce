"""Every Python block of the documentation runs, on a real Kafka and a real Spark.

Blocks that are named as files (`# job.py`) go to spark-submit or to pytest, as their page says.
The others of a page run one after the other in one process, as in a notebook. Only what belongs to
a reader's own place is replaced: the address of the brokers, directories, and waiting for ever.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from eos_sink_lab.testing import KafkaCluster
from integration.messages import received
from integration.pages import WAIT, adapted, run
from tests.snippets import PAGES, ROOT, Snippet, python_snippets, snippets_of

TIMEOUT_S = 240

pytestmark = [pytest.mark.timeout(TIMEOUT_S + 30)]

# The page of `make test`; `make test-long` has them all.
QUICK = ("get-started.md",)


# What the page takes for granted.
GIVEN = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
"""

# What the reader of the page would do next.
AFTERWARDS = """
if "query" in globals():
    if query.isActive:
        _rows_went_through(query)
        query.stop()
    assert query.exception() is None
    del query
"""


def loose() -> list[list[Snippet]]:
    """The blocks without a file name, by page."""
    pages = ([s for s in python_snippets() if s.page == p and not s.file_name] for p in PAGES)
    return [page for page in pages if page]


def jobs() -> list[Snippet]:
    """The blocks for spark-submit; the same text on two pages is one."""
    by_text = {s.text: s for s in python_snippets() if s.file_name == "job.py"}
    return list(by_text.values())


def suite_of_a_user() -> list[Snippet]:
    named = {"conftest.py", "test_orders.py", "query.py", "test_crash.py"}
    return [s for s in python_snippets() if s.file_name in named]


def run_here(command: list[str], cwd: Path) -> None:
    run(command, cwd, TIMEOUT_S, Path(sys.executable), PYTHONPATH=str(ROOT))


@pytest.fixture(scope="module")
def topics(kafka: KafkaCluster) -> KafkaCluster:
    if not kafka.nodes:
        pytest.skip("the given cluster may have topics of these names")
    for topic in ("readings", "readings-dead", "numbers"):
        kafka.create_topic(topic, partitions=2)
    return kafka


@pytest.mark.long
@pytest.mark.parametrize("job", jobs(), ids=lambda job: str(job.place))
def test_a_job_runs_with_spark_submit(topics: KafkaCluster, job: Snippet, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(WAIT + adapted(job.text, topics, tmp_path))
    submit = Path(sys.executable).with_name("spark-submit")
    (command,) = (
        words
        for snippet in snippets_of(job.page)
        for words in map(str.split, snippet.commands if snippet.language == "sh" else [])
        if words[0] == "spark-submit" and words[-1] == job.file_name
    )
    run_here([str(submit), "--master", "local[2]", *command[1:]], tmp_path)
    assert received(topics.bootstrap_servers, "readings", 1)[0].startswith('{"timestamp"')


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param(
            blocks,
            id=blocks[0].page.name,
            marks=[] if blocks[0].page.name in QUICK else [pytest.mark.long],
        )
        for blocks in loose()
    ],
)
def test_the_blocks_of_a_page_run(
    topics: KafkaCluster, blocks: list[Snippet], tmp_path: Path
) -> None:
    script = tmp_path / "page.py"
    texts = [block.text for block in blocks]
    needs_spark = any(re.search(r"\b(spark|rows)\b", text) for text in texts)
    if any("Consumer(" in text for text in texts):
        fill(topics, "readings")
    parts = [WAIT, GIVEN if needs_spark else ""]
    for number, text in enumerate(texts):
        parts += [adapted(text, topics, tmp_path / str(number)), AFTERWARDS]
    script.write_text("\n".join(parts))
    run_here([sys.executable, str(script)], ROOT)


@pytest.mark.long
def test_a_user_s_own_tests_pass(tmp_path: Path) -> None:
    blocks = suite_of_a_user()
    assert len(blocks) == 4
    for block in blocks:
        (tmp_path / str(block.file_name)).write_text(block.text)
    run_here([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path)


def fill(kafka: KafkaCluster, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, b'{"timestamp": 0}')
    assert producer.flush(30) == 0
