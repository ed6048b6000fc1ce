"""Where coordinators are, and who leads next."""

from __future__ import annotations

import pytest

from eos_sink.testing.cluster_admin import Replicas, coordinator_partition, java_hash


@pytest.mark.parametrize(
    ("text", "value"),
    # What a JVM answers.
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_names_hash_as_in_java(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_name_belongs_to_one_partition_whatever_its_sign() -> None:
    assert coordinator_partition("polygenelubricants", 50) == 2**31 % 50
    assert {coordinator_partition(f"id-{n}", 6) for n in range(100)} == set(range(6))


@pytest.mark.parametrize(
    ("copies", "follows"),
    [
        (Replicas(1, (1, 2, 3), (1, 2, 3)), 2),
        (Replicas(3, (1, 2, 3), (1, 2, 3)), 1),
        (Replicas(1, (1, 2, 3), (1, 3)), 3),
        (Replicas(1, (1, 2, 3), (1,)), None),
        (Replicas(-1, (1, 2, 3), (2,)), 2),
        (Replicas(1, (1,), (1,)), None),
    ],
)
def test_the_next_leader_is_in_sync(copies: Replicas, follows: int | None) -> None:
    assert copies.next_leader() == follows
