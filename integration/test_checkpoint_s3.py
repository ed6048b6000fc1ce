"""A checkpoint on an S3-compatible server, through pyarrow's own client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyarrow.fs import FileSystem

from eos_sink.checkpoint import Checkpoint
from eos_sink.errors import ClusterError

moto = pytest.importorskip("moto.server")

BUCKET = "box"
PLACE = "a %20ü/checkpoint"
BATCH = 'v1\n{"batchTimestampMs":17}\n{"orders":{"0":5}}'
FILES = {
    "metadata": '{"id":"8f1c"}',
    "offsets/9": BATCH,
    "offsets/10": BATCH,
    "commits/9": "v1\n{}",
    "sources/0/0": '\0v1\n{"orders":{"0":2}}',
}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileSystem]:
    """A bucket, which the environment leads to."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "word",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    store, _ = FileSystem.from_uri(f"s3://{BUCKET}?allow_bucket_creation=true")
    store.create_dir(BUCKET)
    yield store
    # Servers of one process share what they store.
    store.delete_dir_contents(BUCKET)
    server.stop()


def put(store: FileSystem, path: str, content: str) -> None:
    with store.open_output_stream(f"{BUCKET}/{PLACE}/{path}") as file:
        file.write(content.encode())


@pytest.mark.parametrize("host", [BUCKET, f"me:word@{BUCKET}"])
@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_a_checkpoint_is_read_as_it_changes(store: FileSystem, scheme: str, host: str) -> None:
    checkpoint = Checkpoint(f"{scheme}://{host}/{PLACE}", None)
    assert checkpoint.stream_id() is None
    assert checkpoint.latest_batch() is None
    assert checkpoint.end_offsets(10) is None
    assert checkpoint.initial_offsets() is None
    assert not checkpoint.has_state()
    for path, content in FILES.items():
        put(store, path, content)
    assert checkpoint.stream_id() == "8f1c"
    assert (checkpoint.latest_batch(), checkpoint.latest_commit()) == (10, 9)
    assert checkpoint.end_offsets(10) == {("orders", 0): 5}
    assert checkpoint.initial_offsets() == {("orders", 0): 2}
    put(store, "state/0/0/1.delta", "x")
    assert checkpoint.has_state()


@pytest.mark.long
def test_a_server_that_does_not_answer_is_named_without_secrets(
    store: FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(ClusterError) as error:
        Checkpoint(f"s3a://me:word@{BUCKET}/{PLACE}", None).stream_id()
    assert error.value.data == {"file": f"s3a://{BUCKET}/{PLACE}/metadata"}
    assert "word" not in str(error.value)
