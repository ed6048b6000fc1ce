"""What a shape says is what is written."""

from __future__ import annotations

import pytest

from bench.shape import Shape


def test_a_shape_without_measured_batches_is_none() -> None:
    with pytest.raises(ValueError, match="warm-up"):
        Shape("x", 1, batches=4, warm_up=4)


@pytest.mark.parametrize("length", [5, 20, 100, 1_000])
def test_values_without_spark_have_the_length_and_differ(length: int) -> None:
    shape = Shape("x", 10, 4, 2, value_bytes=length)
    values = {shape.value(number) for number in range(100)}
    assert {len(value) for value in values} == {length}
    assert len(values) == 100


def test_keys_and_headers_are_columns_where_they_are_wanted() -> None:
    assert len(Shape("x", 1, 2, 1).columns) == 1
    value, key, headers = Shape("x", 1, 2, 1, key_bytes=8, headers=2).columns
    assert value.endswith("AS value")
    assert key.startswith("lpad(")
    assert headers.count("named_struct") == 2


def test_all_peers_are_tuned_alike() -> None:
    assert Shape("x", 1, 2, 1, compression="lz4").options == {
        "kafka.acks": "all",
        "kafka.linger.ms": "5",
        "kafka.batch.size": "262144",
        "kafka.compression.type": "lz4",
    }
