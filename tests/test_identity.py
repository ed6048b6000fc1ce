"""Names are built and parsed by one type, and two queries never share one."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eos_sink.errors import ConfigurationError
from eos_sink.identity import (
    DEFAULT_PREFIX,
    Origin,
    QueryNames,
    TaskId,
    batch_identity,
    query_identity,
    query_origin,
)

PREFIX = "eos-sink-"
slots = st.sampled_from((0, 1))
partitions = st.integers(0, 10**6)
# What a user may give as an id: close to our own names, too.
sources = st.text(min_size=1) | st.from_regex(r"[a-c01]{1,3}(-[01]){0,3}", fullmatch=True)


def names(source: str) -> QueryNames:
    return QueryNames(PREFIX, query_identity(source, None, None))


@given(sources, slots, partitions)
def test_a_task_id_is_parsed_as_what_it_was_built_from(
    source: str, slot: int, partition: int
) -> None:
    query = names(source)
    assert query.parse_task(query.task(slot, partition)) == TaskId(slot, partition)


@given(sources, sources, slots, partitions)
def test_no_id_of_a_query_parses_as_another_querys(
    one: str, other: str, slot: int, partition: int
) -> None:
    assume(one != other)
    assert names(one).query != names(other).query
    assert names(other).parse_task(names(one).task(slot, partition)) is None
    assert names(other).parse_task(names(one).driver) is None


@given(sources)
def test_a_name_is_readable_by_kafka_and_fits_its_limit(source: str) -> None:
    query = names(source)
    assert len(query.task(1, 10**6)) < 249
    assert all(c.isascii() and (c.isalnum() or c in "._-") for c in query.task(0, 0))


def test_every_name_of_a_query_starts_with_its_prefix() -> None:
    query = names("orders")
    assert query.group.startswith(f"{PREFIX}orders-")
    for name in (query.driver, query.task(0, 0), query.task(1, 12)):
        assert name.startswith(f"{query.group}-")


@pytest.mark.parametrize(
    "tail",
    [
        "driver",
        "",
        "0",
        "0-",
        "2-0",
        "0-01",
        "0-1-2",
        "00-1",
        "0-x",
        "0--1",
        "-1-0",
        "0-+1",
        "0-1\n",
    ],
)
def test_what_is_no_task_id_is_not_parsed_as_one(tail: str) -> None:
    query = names("orders")
    assert query.parse_task(f"{query.group}-{tail}") is None


SPELLINGS = {
    "/data/q": [
        *("/data/q/", "//data//q", "/data/./q", "file:/data/q", "file:///data/q"),
        *("FILE:///data/q/", "file://localhost/data/q"),
    ],
    "hdfs:/data/q": ["hdfs:///data/q/", "HDFS:///data/./q"],
    "s3a://bucket/checkpoints/q": ["s3a://bucket/checkpoints/q/"],
    "s3://bucket/checkpoints/q": ["S3://bucket//checkpoints/./q/"],
    "dbfs:///checkpoints/q": ["dbfs:/checkpoints/q", "dbfs:///checkpoints/q/"],
    "/Volumes/main/default/state/q": ["file:/Volumes/main/default/state/q"],
}
# docs/platforms.md warns of two file systems for one directory: only the platform knows of it.
PLACES = [
    *SPELLINGS,
    *("/data/r", "/data/Q", "/a/b_c", "/a/b c", "/q", "hdfs:/q", "hdfs://a/q", "hdfs://b/q"),
    *("s3a://a/q", "s3a://a/Q", "s3a://b/q", "gs://bucket/checkpoints/q"),
    "dbfs:/Volumes/main/default/state/q",
    "abfss://one@account.dfs.core.windows.net/checkpoints/q",
    "abfss://two@account.dfs.core.windows.net/checkpoints/q",
    "wasbs://one@account.blob.core.windows.net/checkpoints/q",
    "hdfs://namenode:8020/checkpoints/q",
]


@pytest.mark.parametrize("place", SPELLINGS)
def test_spellings_of_one_place_are_one_query(place: str) -> None:
    identities = {query_identity(None, each, None) for each in (place, *SPELLINGS[place])}
    assert len(identities) == 1
    assert identities.pop().startswith("q-")


def test_each_place_is_a_query_of_its_own() -> None:
    assert len({query_identity(None, place, None) for place in PLACES}) == len(PLACES)


@pytest.mark.parametrize("place", [each for each in PLACES if "://" in each or each[0] == "/"])
def test_a_place_is_shown_as_it_is(place: str) -> None:
    assert query_origin(None, place, None).checkpoint == place


def test_the_id_goes_before_the_checkpoint_and_that_before_the_name() -> None:
    by_id = query_identity("x", None, None)
    by_checkpoint = query_identity(None, "/x", None)
    by_name = query_identity(None, None, "x")
    assert len({by_id, by_checkpoint, by_name}) == 3
    assert query_identity("x", "/x", "x") == by_id
    assert query_identity(None, "/x", "x") == by_checkpoint


def test_an_identity_stays_the_same_for_ever() -> None:
    """A release that names a query differently would write its last batch twice."""
    assert query_identity("orders", None, None) == "orders-5d68ee7d65"
    assert query_identity(None, "/data/q", None) == "q-5f4a29131d"
    assert query_identity(None, None, "orders") == "orders-a56fd6d83e"
    assert batch_identity("a", "b", "c") == "a_b_c-651d16879e"
    assert batch_identity(None, None, None) == "batch-03764712e0"


PARTS = st.none() | st.sampled_from(["a", "b", "a_b", "b_a", "null"])


@given(st.tuples(PARTS, PARTS, PARTS), st.tuples(PARTS, PARTS, PARTS))
def test_two_kinds_of_batch_writes_never_share_an_identity(
    one: tuple[str | None, ...], other: tuple[str | None, ...]
) -> None:
    assert (batch_identity(*one) == batch_identity(*other)) == (one == other)


def test_a_batch_write_and_a_stream_never_share_an_identity() -> None:
    streams = {query_identity("x", None, None), query_identity(None, None, "x")}
    batches = {batch_identity(*("x" if n == i else None for n in range(3))) for i in range(3)}
    assert len(batches) == 3
    assert not streams & batches


def test_no_identity_is_an_error_that_says_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match="checkpointLocation") as error:
        query_identity(None, None, None)
    assert "Nothing was written" in str(error.value)


# --- what is written about a query's start


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/data/cp", "/data/cp"),
        ("file:///data/cp/", "/data/cp"),
        ("s3a://KEY:SECRET@bucket/cp", "s3a://bucket/cp"),
        ("s3a://KEY:SECRET@bucket/a@b/cp", "s3a://bucket/a@b/cp"),
        ("wasbs://c@host/cp?sig=SECRET&x=1", "wasbs://c@host/cp"),
        ("abfss://c:SECRET@host/cp", "abfss://host/cp"),
        ("https://host/cp#SECRET", "https://host/cp"),
        ("abfss://c@host/cp;sig=SECRET", "abfss://c@host/cp"),
        ("abfss://c@host/cp;sv=1;sig=SEC/RET?x=1", "abfss://c@host/cp"),
        ("abfss://c@host/cp?x=1;sig=SECRET", "abfss://c@host/cp"),
        ("hdfs://host:8020/a;b/cp", "hdfs://host:8020/a;b/cp"),
        ("/data/a;b=1/cp", "/data/a;b=1/cp"),
        ("relative?sig=SECRET", "relative"),
        ("s3a//KEY:SECRET@bucket/cp", "s3a//bucket/cp"),
        ("s3a:/KEY:SECRET@bucket/cp", "s3a:///bucket/cp"),
        ("s3a://KEY:SE/SECRET@bucket/cp", "s3a://bucket/cp"),
        ("//KEY:SECRET@bucket/cp", "/bucket/cp"),
        ("hdfs://host:8020/a@b/cp", "hdfs://host:8020/a@b/cp"),
    ],
)
def test_no_secret_of_a_checkpoint_location_is_shown(location: str, shown: str) -> None:
    assert query_origin("x", location, None).checkpoint == shown
    assert "SECRET" not in str(query_origin("x", location, None))


@pytest.mark.parametrize(
    ("location", "readable"),
    [
        ("wasbs://c@host/cp?sig=SECRET", "cp"),
        ("abfss://c@host/cp;sv=1&sig=SECRET", "cp"),
        ("s3a://KEY:SECRET@bucket/", "bucket"),
        ("s3a://KEY:SECRET@bucket/cp", "cp"),
        ("abfss://container@account/", "container_account"),
        ("s3a://KEY:SEC/RET@bucket", "bucket"),
    ],
)
def test_no_secret_of_a_checkpoint_location_is_in_a_name(location: str, readable: str) -> None:
    assert query_identity(None, location, None).startswith(f"{readable}-")


@pytest.mark.parametrize(
    "location", ["checkpoints/q", "./q", "../q", "q", "s3a//KEY:SECRET@bucket/cp", "cp?sig=SECRET"]
)
def test_a_relative_checkpoint_is_an_error_that_shows_no_secret(location: str) -> None:
    with pytest.raises(ConfigurationError, match="relative") as refused:
        query_identity(None, location, None)
    assert "SECRET" not in str(refused.value)


def test_origins_contradict_each_other_only_where_both_say_something() -> None:
    one = Origin("id", "/a", None)
    assert not one.contradicts(one)
    assert not one.contradicts(Origin())
    assert not one.contradicts(Origin("id", None, "name"))
    for other in (Origin("id", "/b"), Origin("other", "/a")):
        assert one.contradicts(other)
        assert other.contradicts(one)
    assert Origin(name="a").contradicts(Origin(name="b"))


def test_an_origin_says_what_is_known() -> None:
    assert str(Origin("x", "/a", "n")) == "eos.id 'x', checkpoint '/a', query name 'n'"
    assert str(Origin()) == "no name"
    assert str(Origin("x", batch=True, topic="t")) == "batch write, eos.id 'x', topic 't'"


@given(
    st.sampled_from([DEFAULT_PREFIX, "team-", "a_b-", "eos-sink-x-"]),
    st.text("abcXYZ019._", min_size=1, max_size=20),
    st.text("0123456789abcdef", min_size=10, max_size=10),
)
def test_names_follow_from_key_and_prefix_and_from_how_a_query_is_shown(
    prefix: str, readable: str, digest: str
) -> None:
    names = QueryNames(prefix, f"{readable}-{digest}")
    assert QueryNames.of_record(names.log_key, prefix) == names
    assert QueryNames.of_record(names.shown, prefix) == names
    assert QueryNames.of_shown(names.shown) == names


@pytest.mark.parametrize("key", ["", "garbage", "orders-012345678", "orders-0123456789-0-1"])
def test_what_ends_in_no_name_of_a_query_is_none(key: str) -> None:
    assert QueryNames.of_shown(key) is None
