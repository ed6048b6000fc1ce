"""A checkpoint directory of each kind of file system.

What cannot be run here (hdfs, gs, abfss, and s3 without its server) is a stub: the real pyarrow
parses the URI where it can, and a local directory takes the place of the store.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

from eos_sink.checkpoint import Checkpoint, remote
from eos_sink.checkpoint import directory as directory_module
from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka_config.source_topics import parse_source_topics
from tests.imported import imported

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000123,"conf":{}}'
END = {("orders", 0): 5, ("orders", 1): 9}
START = {("orders", 0): 2, ("orders", 1): 0}
SECRETS = ("word", "sas")


def write(home: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A checkpoint of a Kafka source and a rate source, with what Spark leaves beside its files."""
    home = tmp_path / "a %20ü" / "checkpoint"
    batch = f'v1\n{METADATA}\n{{"orders":{{"0":5,"1":9}}}}\n42'
    write(
        home,
        {
            "metadata": '{"id":"8f1c"}',
            "offsets/9": batch,
            "offsets/10": batch,
            "offsets/.10.crc": "x",
            "offsets/.11.5f0c.tmp": "x",
            "offsets/12.crc": "x",
            "offsets/x": "x",
            "commits/9": 'v1\n{"nextBatchWatermarkMs":0}',
            "commits/.9.crc": "x",
            "sources/0/0": '\0v1\n{"orders":{"0":2,"1":0}}',
            "sources/1/0": "v1\n0",
        },
    )
    (home / "offsets" / "99").mkdir()
    (home / "sources" / "2").mkdir()
    (home / "sources" / "note").touch()
    return home


def assert_read(checkpoint: Checkpoint) -> None:
    assert checkpoint.stream_id() == "8f1c"
    assert (checkpoint.latest_batch(), checkpoint.latest_commit()) == (10, 9)
    assert checkpoint.end_offsets(10) == END
    assert checkpoint.initial_offsets() == START
    assert checkpoint.end_offsets(11) is None
    assert checkpoint.constructed_ms(10) is not None
    assert checkpoint.constructed_ms(11) is None
    assert not checkpoint.has_state()


def assert_empty(checkpoint: Checkpoint) -> None:
    assert checkpoint.stream_id() is None
    assert checkpoint.initial_offsets() is None
    assert checkpoint.latest_batch() is checkpoint.latest_commit() is None
    assert not checkpoint.has_state()


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}", "FILE://localhost{}"])
def test_a_local_directory_is_read_literally(home: Path, form: str) -> None:
    assert_read(Checkpoint(form.format(home), None))
    assert_empty(Checkpoint(form.format(home / "new"), None))


@pytest.mark.parametrize(
    ("offsets", "topics", "expected"),
    [
        (['{"a":{"0":1}}'], None, False),
        (['{"a":{"0":1}}', '{"b":{"0":1}}'], None, False),
        (['{"a":{"0":1}}', "42"], None, True),
        (['{"a":{"0":1}}', '{"logOffset":0}'], None, True),
        # It has no row yet.
        (['{"a":{"0":1}}', "-"], None, False),
        (['{"a":{"0":1}}', '{"b":{"0":1}}'], "a", True),
        (['{"a":{"0":1}}', '{"b":{"0":1}}'], "a,b", False),
    ],
)
def test_a_source_whose_offsets_are_left_out_is_noticed(
    tmp_path: Path, offsets: list[str], topics: str | None, expected: bool
) -> None:
    write(tmp_path, {"offsets/3": "\n".join(["v1", METADATA, *offsets])})
    selected = parse_source_topics({"subscribe": topics}) if topics else None
    checkpoint = Checkpoint(str(tmp_path), selected)
    checkpoint.end_offsets(3)
    assert checkpoint.reads_others(3) is expected


def test_the_files_are_read_again_at_each_call(home: Path) -> None:
    checkpoint = Checkpoint(str(home), None)
    assert_read(checkpoint)
    (home / "offsets" / "10").rename(home / "offsets" / "11")
    write(home, {"state/0/0/1.delta": "x"})
    assert checkpoint.latest_batch() == 11
    assert checkpoint.end_offsets(10) is None
    assert checkpoint.has_state()


def test_dbfs_is_read_through_its_mount(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "_DBFS", str(home.parent))
    assert_read(Checkpoint("dbfs:/checkpoint", None))
    assert_read(Checkpoint("dbfs:///checkpoint", None))


def test_a_local_directory_needs_no_pyarrow(home: Path) -> None:
    program = (
        "from eos_sink.checkpoint import Checkpoint\n"
        f"assert Checkpoint({str(home)!r}, None).end_offsets(10)"
    )
    found = imported(program)
    assert "pyarrow" not in found
    assert not [name for name in found if name.startswith("eos_sink.kafka.")]


@pytest.mark.parametrize(
    ("path", "content", "ask"),
    [
        ("metadata", "{", Checkpoint.stream_id),
        ("offsets/10", "v1\n", lambda checkpoint: checkpoint.end_offsets(10)),
        ("offsets/10", "v1\n{", lambda checkpoint: checkpoint.end_offsets(10)),
        ("offsets/10", "v1\n", lambda checkpoint: checkpoint.constructed_ms(10)),
        ("sources/0/0", "\0v1\n{", Checkpoint.initial_offsets),
        ("sources/0/0", "", Checkpoint.initial_offsets),
    ],
)
def test_a_damaged_file_is_named(
    home: Path, path: str, content: str, ask: Callable[[Checkpoint], Any]
) -> None:
    write(home, {path: content})
    with pytest.raises(ClusterError) as error:
        ask(Checkpoint(str(home), None))
    assert error.value.data == {"file": f"{home}/{path}"}


def test_a_batch_without_a_kafka_source_is_an_error(home: Path) -> None:
    write(home, {"offsets/10": f"v1\n{METADATA}\n42"})
    others = Checkpoint(str(home), parse_source_topics({"subscribe": "audit"}))
    for checkpoint, batch in ((Checkpoint(str(home), None), 10), (others, 9)):
        with pytest.raises(ConfigurationError) as error:
            checkpoint.end_offsets(batch)
        assert error.value.data == {"file": f"{home}/offsets/{batch}"}
    assert others.initial_offsets() is None


def test_a_location_that_cannot_be_read_is_an_error(home: Path) -> None:
    for location in (home / "metadata", home / "offsets" / ("x" * 300)):
        with pytest.raises(ClusterError):
            Checkpoint(str(location), None).stream_id()
    with pytest.raises(ClusterError):
        Checkpoint(f"{home}\0", None).latest_batch()


@pytest.mark.parametrize("scheme", ["wasbs", "oss", "file"])
def test_an_unknown_file_system_is_refused_without_its_secrets(scheme: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Checkpoint(f"{scheme}://me:word@host/x?sas", None).stream_id()
    assert not [secret for secret in SECRETS if secret in str(error.value)]


class StubStore:
    """Takes the place of pyarrow's `FileSystem`: a local directory is the whole store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uris: list[str] = []

    def from_uri(self, uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
        self.uris.append(uri)
        local = pyarrow.fs.LocalFileSystem()
        return pyarrow.fs.SubTreeFileSystem(str(self.root), local), "checkpoint/"


@pytest.fixture
def store(home: Path, monkeypatch: pytest.MonkeyPatch) -> StubStore:
    stub = StubStore(home.parent)
    monkeypatch.setattr(remote, "FileSystem", stub)
    return stub


@pytest.mark.parametrize(
    ("location", "uri"),
    [
        ("hdfs://name:8020/x/checkpoint", "hdfs://name:8020/x/checkpoint"),
        ("hdfs:///checkpoint", "hdfs:///checkpoint"),
        ("hdfs:/checkpoint", "hdfs:///checkpoint"),
        ("s3://bucket/a b/100%?x", "s3://bucket/a%20b/100%25%3Fx"),
        ("s3a://bucket/ü", "s3://bucket/%C3%BC"),
        ("S3N://bucket/x", "s3://bucket/x"),
        ("gs://bucket/x", "gs://bucket/x?retry_limit_seconds=30"),
        ("abfss://box@me.dfs.core.windows.net/x", "abfss://box@me.dfs.core.windows.net/x"),
        ("abfs://box@me.dfs.core.windows.net/x", "abfs://box@me.dfs.core.windows.net/x"),
    ],
)
def test_a_stub_of_a_remote_file_system_is_read(store: StubStore, location: str, uri: str) -> None:
    """No hdfs, s3, gs or abfss: the URI that pyarrow would get, and a local directory behind it."""
    checkpoint = Checkpoint(location, None)
    assert_read(checkpoint)
    assert store.uris == [uri]
    store.root /= "other"
    assert_empty(Checkpoint(location, None))


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("s3a://key:wo%2Frd@bucket/a b/100%?x", "bucket/a b/100%?x"),
        ("gs://bucket/a b", "bucket/a b"),
        ("abfss://box@me.dfs.core.windows.net/ü", "box/ü"),
    ],
)
def test_pyarrow_takes_the_path_as_hadoop_does(
    location: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real `from_uri`, which connects to nothing: only the names are looked at."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    scheme, _, rest = location.partition("://")
    host, _, below = rest.partition("/")
    known = {"s3a": "s3"}.get(scheme, scheme)
    assert remote.RemoteFiles(known, host, f"/{below}")._directory == path


class Refusing(StubStore):
    """A store that refuses every request, and repeats the location in its error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(Path())
        self.error = error

    def from_uri(self, uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
        raise self.error


@pytest.mark.parametrize(
    "location",
    [
        "s3a://key:word@bucket/x",
        "abfss://box@me.dfs.core.windows.net/x?sig=sas",
        "abfss://box@me.dfs.core.windows.net/x;SharedAccessSignature=sas",
    ],
)
@pytest.mark.parametrize("kind", [OSError, ValueError, NotImplementedError])
def test_what_a_store_refuses_is_an_error_without_secrets(
    monkeypatch: pytest.MonkeyPatch, location: str, kind: type[Exception]
) -> None:
    monkeypatch.setattr(remote, "FileSystem", Refusing(kind(f"no access to {location}\nmore")))
    checkpoint = Checkpoint(location, None)
    for ask in (checkpoint.stream_id, checkpoint.latest_batch, checkpoint.has_state):
        with pytest.raises(ClusterError) as error:
            ask()
        text = f"{error.value}{error.value.data}"
        assert not [secret for secret in SECRETS if secret in text]
        assert error.value.__cause__ is None


def test_a_store_that_does_not_say_missing_by_the_kind_of_its_error(
    store: StubStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stream:
        def open_input_stream(self, path: str) -> object:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        def get_file_info(self, path: str) -> pyarrow.fs.FileInfo:
            kind = pyarrow.fs.FileType
            return pyarrow.fs.FileInfo(path, kind.File if "metadata" in path else kind.NotFound)

    monkeypatch.setattr(store, "from_uri", lambda uri: (Stream(), "x"))
    checkpoint = Checkpoint("hdfs:///checkpoint", None)
    assert checkpoint.end_offsets(1) is None
    with pytest.raises(ClusterError):
        checkpoint.stream_id()
