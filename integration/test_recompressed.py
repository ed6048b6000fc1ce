"""Topics with a codec of their own: what fits only until the brokers compress it."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from eos_sink.errors import ProduceFailedError
from eos_sink.kafka.rows import Rows
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.task.record_sizes import Codec, RecordSizes, find_largest
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.topics import new_topic

LIMIT = 1_000_000
# Of a record batch and of the record around a value of that size.
AROUND = 61 + 3 + 3 + 1 + 3 + 1
CODECS = pytest.mark.parametrize(
    "codec",
    ["gzip", *(pytest.param(each, marks=pytest.mark.long) for each in ("snappy", "lz4", "zstd"))],
)
WAYS = pytest.mark.parametrize(
    "way",
    [
        {"eos_native": "true"},
        pytest.param({"eos_native": "false"}, marks=pytest.mark.long),
        {"eos_inline_bytes": str(LIMIT)},
    ],
    ids=["native", "row by row", "inline"],
)


def noise(size: int, seed: int = 0) -> bytes:
    """What no codec makes smaller."""
    return random.Random(seed).randbytes(size)


def made_of(size: int, seed: int, random_share: float) -> bytes:
    """Random bytes and others in turn, at distances that some codecs see and some do not."""
    chance = random.Random(seed)
    pieces: list[bytes] = []
    while sum(map(len, pieces)) < size:
        length = chance.choice((10, 100, 3_000, 40_000))
        fresh = not pieces or chance.random() < random_share
        pieces.append(chance.randbytes(length) if fresh else chance.choice(pieces))
    return b"".join(pieces)[:size]


@CODECS
@WAYS
@pytest.mark.parametrize("dead", [False, True], ids=["strict", "dead letters"])
def test_full_batches_fit_into_a_topic_that_compresses_them_again(
    kafka: KafkaCluster, run: MakeRun, codec: str, way: dict[str, str], dead: bool
) -> None:
    topic = new_topic(kafka, "main", 1, max_message_bytes=LIMIT, compression_type=codec)
    more = {"eos_dead_letter_topic": new_topic(kafka, "dead", 1)} if dead else {}
    query = run(kafka, topic=topic, kafka_batch_size=str(LIMIT), **way, **more)
    inline = "eos_inline_bytes" in way
    # Two of them fill a record batch; the driver gets one Arrow batch at most.
    rows = [noise(LIMIT // 2 - 100, seed) for seed in range(2 if inline else 6)]
    query.write(value=rows)
    assert [row.value for row in read_topic(kafka.bootstrap_servers, topic)] == rows


@CODECS
@WAYS
@pytest.mark.parametrize("own", ["none", "the same"])
def test_a_row_that_only_fits_before_it_is_compressed_is_refused_by_name_or_a_dead_letter(
    kafka: KafkaCluster, run: MakeRun, codec: str, way: dict[str, str], own: str
) -> None:
    topic = new_topic(kafka, "main", 1, max_message_bytes=LIMIT, compression_type=codec)
    letters = new_topic(kafka, "dead", 1)
    used = codec if own == "the same" else "none"
    given = {"topic": topic, "kafka_compression_type": used, **way}
    row = noise(LIMIT - AROUND)
    with pytest.raises(ProduceFailedError) as refused:
        run(kafka, **given).write(value=[row])
    assert refused.value.data["compression.type"] == codec
    assert f"compression.type={codec}" in str(refused.value)
    assert topic in str(refused.value)
    query = run(kafka, eos_dead_letter_topic=letters, **given)
    report = query.write(value=[row, b"good"])
    assert report.dead_letters == {"RecordTooLargeException": 1}
    assert [each.value for each in read_topic(kafka.bootstrap_servers, topic)] == [b"good"]
    (letter,) = read_topic(kafka.bootstrap_servers, letters)
    assert letter.value == row
    reason = dict(letter.headers or [])["__connect.errors.exception.message"] or b""
    assert f"compression.type={codec}" in reason.decode()


@pytest.mark.parametrize(
    ("client", "level", "codec", "theirs"),
    [("gzip", "0", "producer", {}), ("gzip", "9", "zstd", {"compression_zstd_level": "-100000"})],
    ids=["the client's", "the topic's"],
)
def test_a_level_that_compresses_less_than_the_default_is_not_taken_for_it(
    kafka: KafkaCluster, run: MakeRun, client: str, level: str, codec: str, theirs: dict[str, str]
) -> None:
    most = 100_000
    topic = new_topic(kafka, "main", 1, max_message_bytes=most, compression_type=codec, **theirs)
    letters = new_topic(kafka, "dead", 1, max_message_bytes=1_000_000)
    given = {"kafka_compression_type": client, "kafka_compression_level": level}
    query = run(kafka, topic=topic, eos_dead_letter_topic=letters, **given)
    words = random.Random(0).choices([b"order", b"customer", b"amount", b"day", b"17"], k=40_000)
    report = query.write(value=[b" ".join(words), b"good"])
    assert report.dead_letters == {"RecordTooLargeException": 1}
    assert [each.value for each in read_topic(kafka.bootstrap_servers, topic)] == [b"good"]


def find_edge(content: bytes, client: str, topic: TopicRules) -> int:
    """The largest start of the content that the topic is sure to take; the next one is not."""
    low, high = 1, len(content)
    while high - low > 1:
        middle = (low + high) // 2
        row = Rows(pa.array([content[:middle]]), topic="t")
        plain = int(RecordSizes(row).sizes()[1][0])
        fits = plain <= topic.sure_bytes
        fits = fits or find_largest(row, plain, Codec(client, None), topic) <= topic.max_bytes
        low, high = (middle, high) if fits else (low, middle)
    return low


@pytest.mark.long
@CODECS
@pytest.mark.parametrize("client", ["none", "codec", "another"])
@pytest.mark.parametrize("own", [True, False], ids=["own codec", "producer"])
@pytest.mark.parametrize("random_share", [1.0, 0.5, 0.05])
def test_a_row_near_the_limit_is_written_or_a_dead_letter_and_never_refused(
    kafka: KafkaCluster, run: MakeRun, codec: str, client: str, own: bool, random_share: float
) -> None:
    most, names = 150_000, ["gzip", "snappy", "lz4", "zstd"]
    clients = {"codec": codec, "another": names[names.index(codec) - 1]}
    used, theirs = clients.get(client, client), codec if own else "producer"
    topic = new_topic(kafka, "main", 1, max_message_bytes=most, compression_type=theirs)
    letters = new_topic(kafka, "dead", 1, max_message_bytes=10_000_000)
    given = {
        "topic": topic,
        "kafka_compression_type": used,
        "kafka_max_request_size": "8000000",
    }
    query = run(kafka, eos_dead_letter_topic=letters, **given)
    for seed in range(4):
        content = made_of(4_000_000, seed, random_share)
        edge = find_edge(content, used, TopicRules(1, most, theirs))
        report = query.write(value=[content[:edge], content[: edge + 1]])
        assert report.dead_letters == {"RecordTooLargeException": 1}
    if random_share == 1.0:
        with pytest.raises(ProduceFailedError):
            run(kafka, **given).write(value=[content[: edge * 41 // 40]])
