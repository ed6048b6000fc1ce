"""Topics with a codec of their own: what fits only until the brokers compress it."""

from __future__ import annotations

import random

import pytest

from eos_sink.errors import ProduceFailedError
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.topics import new_topic

LIMIT = 1_000_000
# Of a record batch and of the record around a value of that size.
AROUND = 61 + 3 + 3 + 1 + 3 + 1
CODECS = pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
WAYS = pytest.mark.parametrize(
    "way",
    [
        {"eos_native": "true"},
        {"eos_native": "false"},
        {"eos_inline_bytes": str(LIMIT)},
    ],
    ids=["native", "row by row", "inline"],
)


def noise(size: int, seed: int = 0) -> bytes:
    """What no codec makes smaller."""
    return random.Random(seed).randbytes(size)


@pytest.mark.sampled(2)
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


@pytest.mark.sampled(2)
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
