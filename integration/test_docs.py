"""Every Python block of the documentation runs, on a real Kafka and a real Spark.

Blocks that are named as files (`# job.py`) go to spark-submit or to pytest, as their page says.
The others of a page run one after the other in one process, as in a notebook. Only what belongs to
a reader's own place is replaced: the address of the brokers, directories, waiting for ever, and the
download of Spark's Kafka source.
"""

from __future__ import annotations

import re
import sys
import uuid
from pathlib import Path

import pytest

from eos_sink_lab.testing import KafkaCluster
from integration.messages import received, send
from integration.pages import WAIT, adapted, kafka_jars, run
from tests.snippets import PAGES, ROOT, Snippet, python_snippets, snippets_of

TIMEOUT_S = 600

# The page of `make test`; `make test-long` has them all.
QUICK = ("get-started.md",)


# What the page takes for granted.
GIVEN = """
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.jars", "{jars}")
    .getOrCreate()
)
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


TOPICS = ("sensors", "readings", "readings-dead", "numbers")
# What a query of the documentation reads.
ROWS = [f'{{"number": {number}, "celsius": {number}}}' for number in range(100)]


def sources(text: str) -> list[str]:
    """The topics that a block reads."""
    return re.findall(r'"subscribe": "(\w+)"', text)


def loose() -> list[list[Snippet]]:
    """The blocks without a file name, by page."""
    pages = ([s for s in python_snippets() if s.page == p and not s.file_name] for p in PAGES)
    return [page for page in pages if page]


def jobs() -> list[Snippet]:
    """The blocks for spark-submit; the same text on two pages is one."""
    by_text = {s.text: s for s in python_snippets() if s.file_name in {"job.py", "sensors.py"}}
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
    for topic in TOPICS:
        kafka.create_topic(topic, partitions=2)
    return kafka


@pytest.mark.long
@pytest.mark.parametrize("job", jobs(), ids=lambda job: str(job.place))
def test_a_job_runs_with_spark_submit(kafka: KafkaCluster, job: Snippet, tmp_path: Path) -> None:
    text = adapted(job.text, kafka, tmp_path)
    # Topics, and with them an identity and a group, that no other job has used.
    names = {name: f"{name}_{uuid.uuid4().hex[:8]}" for name in ("sensors", "readings")}
    for name, own in names.items():
        kafka.create_topic(own, partitions=2)
        text = text.replace(f'"{name}"', f'"{own}"')
    for topic in sources(text):
        send(kafka.bootstrap_servers, topic, *ROWS)
    (tmp_path / str(job.file_name)).write_text(WAIT + text)
    submit = Path(sys.executable).with_name("spark-submit")
    (command,) = (
        words
        for snippet in snippets_of(job.page)
        for words in map(str.split, snippet.commands if snippet.language == "sh" else [])
        if words[0] == "spark-submit" and words[-1] == job.file_name
    )
    words = adapted(" ".join(command[1:]), kafka, tmp_path).split()
    run_here([str(submit), "--master", "local[2]", *words], tmp_path)
    (output,) = re.findall(r'"topic"[:,] "(\w+)"', text)
    assert received(kafka.bootstrap_servers, output, 1)[0].startswith('{"number"')


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
    whole = "\n".join(texts)
    for topic in ["readings"] * ("Consumer(" in whole) + sources(whole):
        send(topics.bootstrap_servers, topic, *ROWS)
    needs_spark = re.search(r"\b(spark|rows)\b", whole) and "SparkSession.builder" not in whole
    parts = [WAIT, GIVEN.format(jars=kafka_jars() if sources(whole) else "") if needs_spark else ""]
    for number, (text, after) in enumerate(zip(texts, [*texts[1:], ""], strict=True)):
        goes_on = "query." in after and "query = " not in after
        parts += [adapted(text, topics, tmp_path / str(number)), "" if goes_on else AFTERWARDS]
    script.write_text("\n".join(parts))
    run_here([sys.executable, str(script)], ROOT)


@pytest.mark.long
def test_a_user_s_own_tests_pass(tmp_path: Path) -> None:
    blocks = suite_of_a_user()
    assert len(blocks) == 4
    for block in blocks:
        (tmp_path / str(block.file_name)).write_text(block.text)
    run_here([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path)
