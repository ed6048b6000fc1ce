"""A broker that is too old, a real one: Kafka 2.8 with its ZooKeeper."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from eos_sink.driver.planner import Planner
from eos_sink.errors import ClusterError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.cluster_admin import read_metadata
from eos_sink_lab.testing.jar_cache import download_jars, ensure_jars
from eos_sink_lab.testing.java import Java, find_java
from eos_sink_lab.testing.kafka_files import kafka_artifacts
from eos_sink_lab.testing.network_links import free_ports
from eos_sink_lab.testing.node_properties import properties_text
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.waiting import to_stderr, wait_until
from eos_sink_lab.testing.watchdog import Watchdog

VERSION = "2.8.2"
STARTS_WITHIN_S = 90.0

pytestmark = pytest.mark.long


def jars(java: Java) -> Path:
    """Of that version and its ZooKeeper, from the cache or from Maven Central."""
    directory = cache_root() / "kafka-old" / VERSION
    label = f"Kafka {VERSION}"

    def download(draft: Path) -> None:
        artifacts = kafka_artifacts(VERSION)
        download_jars(artifacts, draft, java, label=label, progress=to_stderr)

    ensure_jars(directory, download, label, to_stderr)
    return directory


@pytest.fixture
def old_kafka() -> Iterator[str]:
    """Its address."""
    java = find_java()
    home = Path(tempfile.mkdtemp(prefix="eos-kafka-old-"))
    watchdog = Watchdog(remove=home)
    keeper, broker = free_ports(2)
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars(java)}/*")
    address = f"127.0.0.1:{broker}"
    programs = {
        "org.apache.zookeeper.server.quorum.QuorumPeerMain": {
            "dataDir": home / "zookeeper",
            "clientPort": keeper,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
        },
        "kafka.Kafka": {
            "broker.id": 0,
            "zookeeper.connect": f"127.0.0.1:{keeper}",
            "listeners": f"PLAINTEXT://{address}",
            "log.dirs": home / "data",
        },
    }
    with ExitStack() as ending:
        ending.callback(watchdog.close)
        ending.callback(shutil.rmtree, home, ignore_errors=True)
        for program, properties in programs.items():
            file, log = home / f"{program}.properties", home / f"{program}.log"
            file.write_text(properties_text({n: str(value) for n, value in properties.items()}))
            command = [java.executable, *options, program, file]
            tree = ProcessTree(command, log, {**os.environ, **watchdog.environ}, cwd=home)
            ending.callback(tree.kill)
        wait_for(address)
        yield address


def wait_for(address: str) -> None:
    deadline = Deadline(STARTS_WITHIN_S)

    def answers() -> bool:
        metadata = read_metadata(address, deadline)
        return metadata is not None and bool(metadata.brokers)

    wait_until(answers, deadline, f"Kafka {VERSION} answers")


def test_a_broker_that_is_too_old_is_reported_with_what_it_lacks(old_kafka: str) -> None:
    options = parse_options({"kafka.bootstrap.servers": old_kafka, "eos.id": "q", "topic": "t"})
    kafka = ConfluentKafka(options.cluster)
    with pytest.raises(ClusterError) as error:
        Planner(kafka, options).plan()
    kafka.close()
    assert "ListTransactions version 0 (KIP-664, Kafka 3.0)" in str(error.value)
    assert "Kafka 3.6 or newer" in error.value.remedy
    lacking = ["AddPartitionsToTxn", "ListTransactions", "DescribeTransactions", "FindCoordinator"]
    assert error.value.data["lacking"] == lacking
