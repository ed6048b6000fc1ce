"""What is in the cache is whole, or fetched again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing import DownloadError, NotReadyError, jar_cache, kafka_files
from eos_sink_lab.testing.cache import cache_root, exclusive
from eos_sink_lab.testing.jar_cache import Artifact, find_problems
from eos_sink_lab.testing.java import Java

JAVA = Java(Path("/java"), "17.0.1")


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """A directory as a finished download leaves it."""
    for name in ("a.jar", "b.jar", "bootstrap.checkpoint"):
        (tmp_path / name).write_text(f"content of {name}")
    jar_cache.write_manifest(tmp_path)
    return tmp_path


def test_a_complete_download_has_no_problems(complete: Path) -> None:
    (complete / "classes-1.jsa").touch()
    assert find_problems(complete) == []


def test_a_missing_a_cut_and_a_foreign_jar_are_noticed(complete: Path) -> None:
    (complete / "a.jar").unlink()
    (complete / "b.jar").write_text("cut")
    (complete / "evil.jar").touch()
    assert find_problems(complete) == [
        "a.jar is missing",
        "b.jar has 3 bytes, not 16",
        "evil.jar does not belong there",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "4.3.0"}', '{"entries": [{"x": 1}]}'])
def test_a_broken_manifest_means_an_incomplete_download(tmp_path: Path, text: str) -> None:
    (tmp_path / jar_cache.MANIFEST).write_text(text)
    assert len(find_problems(tmp_path)) == 1


class Downloads:
    """A cache whose downloads only write a file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
        self.made: list[str] = []
        self.messages: list[str] = []
        self._environ = {"EOS_CACHE": str(cache)}

        def download(artifacts: list[Artifact], target: Path, java: Java, **_: object) -> None:
            assert not list(target.iterdir()), "leftovers of an interrupted download are gone"
            (target / "kafka.jar").write_text(artifacts[0].version)
            self.made.append(artifacts[0].version)

        monkeypatch.setattr(jar_cache, "download_jars", download)
        monkeypatch.setattr(
            kafka_files, "_record_bootstrap", lambda files, java: files.bootstrap_records.touch()
        )

    def ensure(self, version: str = "4.3.0") -> kafka_files.KafkaFiles:
        return kafka_files.ensure_kafka(version, JAVA, self.messages.append, self._environ)


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Downloads:
    return Downloads(monkeypatch, tmp_path)


def test_kafka_is_downloaded_once(downloads: Downloads) -> None:
    files = downloads.ensure()
    assert downloads.ensure() == files
    assert (files.directory / "kafka.jar").read_text() == "4.3.0"
    assert downloads.made == ["4.3.0"]


def test_a_broken_kafka_is_downloaded_again_with_a_message(downloads: Downloads) -> None:
    files = downloads.ensure()
    (files.directory / "kafka.jar").write_text("cut")
    downloads.ensure()
    assert downloads.made == ["4.3.0", "4.3.0"]
    assert any("kafka.jar has 3 bytes, not 5" in line for line in downloads.messages)


def test_an_interrupted_download_is_no_kafka(downloads: Downloads, tmp_path: Path) -> None:
    (tmp_path / "kafka" / ".4.3.0.part").mkdir(parents=True)
    (tmp_path / "kafka" / ".4.3.0.part" / "half.jar").touch()
    (tmp_path / "kafka" / "4.3.0").mkdir(parents=True)
    downloads.ensure()
    assert downloads.made == ["4.3.0"]


@pytest.mark.parametrize("version", ["", "4.3", "../4.3.0", "4.3.0 ", "latest"])
def test_what_is_not_a_version_is_refused(downloads: Downloads, version: str) -> None:
    with pytest.raises(DownloadError, match=r"4\.3\.0"):
        downloads.ensure(version)
    assert downloads.made == []


IVY = """#!/bin/sh
echo "$@" > {arguments}
echo "unresolved dependency"
{script}
"""


@pytest.mark.parametrize("script", ["exit 1", "exit 0", "touch {target}/a-1.jar; exit 1"])
def test_a_download_that_fails_has_ivys_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    script = script.format(target=tmp_path)
    java.write_text(IVY.format(arguments=tmp_path / "arguments", script=script))
    java.chmod(0o755)
    monkeypatch.setattr(jar_cache, "find_ivy", lambda _: Path("ivy.jar"))
    runtime = Java(tmp_path, "17.0.1")
    environ = {"EOS_CACHE": str(tmp_path), "EOS_IVY_SETTINGS": "mirror.xml"}
    with pytest.raises(DownloadError) as error:
        jar_cache.download_jars(
            [Artifact("org", "a", "1")],
            tmp_path,
            runtime,
            label="A 1",
            progress=print,
            environ=environ,
        )
    assert "unresolved dependency" in str(error.value)
    assert "-settings mirror.xml" in (tmp_path / "arguments").read_text()


def test_an_artifact_comes_with_or_without_its_dependencies() -> None:
    text = jar_cache.ivy_module([Artifact("o", "a", "1"), Artifact("o", "b", "2", False)], "m")
    wanted = ElementTree.fromstring(text).findall("dependencies/dependency")
    assert [(each.get("name"), each.get("rev"), each.get("transitive")) for each in wanted] == [
        ("a", "1", "true"),
        ("b", "2", "false"),
    ]


def test_without_pyspark_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DownloadError, match="pip install pyspark"):
        jar_cache.find_ivy({})


def test_a_spark_home_has_an_ivy_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "jars").mkdir()
    jar = tmp_path / "jars" / "ivy-2.5.3.jar"
    jar.touch()
    assert jar_cache.find_ivy({"SPARK_HOME": str(tmp_path)}) == jar


def test_where_the_cache_is(tmp_path: Path) -> None:
    assert cache_root({"EOS_CACHE": str(tmp_path)}) == tmp_path
    assert cache_root({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "eos-sink"
    assert cache_root({}) == Path.home() / ".cache" / "eos-sink"


HOLDER = """
import sys, pathlib
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cache import exclusive
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
