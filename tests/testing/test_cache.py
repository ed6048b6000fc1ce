"""What is in the cache is whole, or fetched again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import DownloadError, NotReadyError, ivy, kafka_files, manifest
from eos_sink.testing.cache import cache_root, exclusive
from eos_sink.testing.jvm import Java

JAVA = Java(Path("/java"), 17, "17.0.1", "PATH")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A directory as a finished download leaves it."""
    for name in ("a.jar", "b.jar", "bootstrap.checkpoint"):
        (tmp_path / name).write_text(f"content of {name}")
    manifest.take("4.3.0", tmp_path).write(tmp_path)
    return tmp_path


def problems(directory: Path, *, hashes: bool = False) -> list[str]:
    known = manifest.read(directory)
    assert known is not None
    return known.problems(directory, hashes=hashes)


def test_a_whole_download_has_no_problems(whole: Path) -> None:
    assert problems(whole, hashes=True) == []


def test_a_missing_file_is_noticed(whole: Path) -> None:
    (whole / "a.jar").unlink()
    assert problems(whole) == ["a.jar is missing"]


def test_a_cut_file_is_noticed(whole: Path) -> None:
    (whole / "b.jar").write_text("cut")
    assert problems(whole) == ["b.jar has 3 bytes, not 16"]


def test_a_changed_file_of_the_same_size_is_noticed_by_its_hash(whole: Path) -> None:
    (whole / "b.jar").write_text("kontent of b.jar")
    assert problems(whole) == []
    assert len(problems(whole, hashes=True)) == 1


def test_a_jar_that_does_not_belong_there_is_noticed(whole: Path) -> None:
    (whole / "evil.jar").touch()
    (whole / "classes-1.jsa").touch()
    assert problems(whole) == ["evil.jar does not belong there"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "4.3.0"}', '{"entries": [{"x": 1}]}'])
def test_a_broken_manifest_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / manifest.NAME).write_text(text)
    assert manifest.read(tmp_path) is None


def fake_download(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tuple[ivy.Workbench, list[str], list[str]]:
    """A bench whose downloads only write a file; with the lists of downloads and messages."""
    fetched: list[str] = []
    said: list[str] = []

    def retrieve(version: str, target: Path, ivy_cache: Path, bench: ivy.Workbench) -> None:
        assert not target.exists(), "leftovers of an interrupted download are gone"
        target.mkdir(parents=True)
        (target / "kafka.jar").write_text(version)
        fetched.append(version)

    def record(files: kafka_files.KafkaFiles, java: Java) -> None:
        files.bootstrap_records.touch()

    monkeypatch.setattr(ivy, "retrieve_kafka", retrieve)
    monkeypatch.setattr(kafka_files, "_record_bootstrap", record)
    return ivy.Workbench(JAVA, said.append, {"EOS_CACHE": str(tmp_path)}), fetched, said


def test_kafka_is_downloaded_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench, fetched, _ = fake_download(monkeypatch, tmp_path)
    files = kafka_files.ensure_kafka("4.3.0", bench)
    assert kafka_files.ensure_kafka("4.3.0", bench) == files
    assert (files.directory / "kafka.jar").read_text() == "4.3.0"
    assert fetched == ["4.3.0"]


def test_a_broken_kafka_is_fetched_again_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench, fetched, said = fake_download(monkeypatch, tmp_path)
    files = kafka_files.ensure_kafka("4.3.0", bench)
    (files.directory / "kafka.jar").write_text("cut")
    kafka_files.ensure_kafka("4.3.0", bench)
    assert fetched == ["4.3.0", "4.3.0"]
    assert any("kafka.jar has 3 bytes, not 5; fetching it again" in line for line in said)


def test_an_interrupted_download_is_no_kafka(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench, fetched, _ = fake_download(monkeypatch, tmp_path)
    (tmp_path / "kafka" / ".4.3.0.part").mkdir(parents=True)
    (tmp_path / "kafka" / "4.3.0").mkdir(parents=True)
    kafka_files.ensure_kafka("4.3.0", bench)
    assert fetched == ["4.3.0"]


@pytest.mark.parametrize("version", ["", "4.3", "../4.3.0", "4.3.0 ", "latest"])
def test_what_is_not_a_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    bench, fetched, _ = fake_download(monkeypatch, tmp_path)
    with pytest.raises(DownloadError, match=r"looks like 4\.3\.0"):
        kafka_files.ensure_kafka(version, bench)
    assert fetched == []


def test_without_pyspark_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DownloadError, match="pip install pyspark"):
        ivy.find_ivy({})


def test_a_spark_home_has_an_ivy_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "jars").mkdir()
    jar = tmp_path / "jars" / "ivy-2.5.3.jar"
    jar.touch()
    assert ivy.find_ivy({"SPARK_HOME": str(tmp_path)}) == jar


def test_where_the_cache_is(tmp_path: Path) -> None:
    assert cache_root({"EOS_CACHE": str(tmp_path)}) == tmp_path
    assert cache_root({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "eos-sink"
    assert cache_root({}) == Path.home() / ".cache" / "eos-sink"


HOLDER = """
import sys, pathlib
from eos_sink.kafka.deadline import Deadline
from eos_sink.testing.cache import exclusive
with exclusive(pathlib.Path(sys.argv[1]), Deadline(5), lambda: None):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_do_not_download_at_once_and_a_dead_one_holds_nothing(
    tmp_path: Path,
) -> None:
    lock = tmp_path / ".4.3.0.lock"
    waits: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(NotReadyError),
            exclusive(lock, Deadline(0.1), lambda: waits.append("waiting")),
        ):
            pass
        other.kill()
    with exclusive(lock, Deadline(5), lambda: waits.append("again")):
        pass
    assert waits == ["waiting"]
