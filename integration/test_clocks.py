"""Machines whose clocks are wrong, on a real broker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from eos_sink.errors import ClusterError, ProduceFailedError
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink_lab.testing import KafkaCluster
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.kafka_tools import carry_out
from integration.own_kafka import start_own_kafka
from integration.topics import new_topic

HOUR_MS = 3_600_000


# Only the time of day: a JVM that waits goes by another clock.
SHIM = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, at);
    if (clock == CLOCK_REALTIME) at->tv_sec += atol(getenv("CLOCK_OFF_S"));
    return failed;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
QUERIES, BATCHES = 6, 3


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize("off_s", [1200, -1200])
def test_brokers_whose_clocks_differ_do_not_make_a_vote_fail(
    run: MakeRun, tmp_path: Path, off_s: int
) -> None:
    """Coordinators of the driver and of tasks are on any of the three."""
    source, shim = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    with start_own_kafka(brokers=3) as cluster:
        wrong = next(node for node in cluster.nodes if node.role.serves_clients)
        wrong.restart(environ={"LD_PRELOAD": str(shim), "CLOCK_OFF_S": str(off_s)})
        topic = new_topic(cluster, "readings", 6)
        values = []
        for number in range(QUERIES):
            query = run(cluster, topic=topic, eos_id=f"q{number}", eos_inline_bytes="0")
            for batch in range(BATCHES):
                values.append(f"{number}-{batch}")
                query.write(value=[values[-1]])
        rows = read_topic(cluster.bootstrap_servers, topic)
        assert sorted(rows.values()) == sorted(values)


# On Kafka 4 an hour ahead is refused by default. Here a request with records arrives later than a
# topic takes them. Not a few ms: brokers time and check the markers of transactions, too, and never
# end a transaction one of whose partitions refuses its marker so.
REFUSES, LATE = {"message_timestamp_before_max_ms": 500}, {"kafka_reconnect_backoff_ms": "2000"}
# The decision, which may be sent first, names the topic, too.
ROW = "a row that is late"


def test_a_log_that_refuses_the_drivers_clock_is_told_how_to_take_it(
    linked: KafkaCluster, run: MakeRun
) -> None:
    log = new_topic(linked, "log", LOG_PARTITIONS, cleanup_policy="compact", **REFUSES)
    topic = new_topic(linked, "readings")
    query = run(linked, topic=topic, eos_log_topic=log, **LATE)
    with (
        linked.nodes[0].link.hold("Produce", log),
        pytest.raises(ClusterError, match="clock and the brokers' are too far apart") as error,
    ):
        query.write(value=["a"])
    command = error.value.remedy.splitlines()[1]
    carry_out(command.replace("HOST:PORT", linked.bootstrap_servers))
    query.write(value=["a"])
    assert read_topic(linked.bootstrap_servers, topic).values() == ["a"]


@pytest.mark.parametrize("inline", ["0", "1000"])
def test_a_row_whose_time_is_refused_is_told_which_clock_it_has(
    linked: KafkaCluster, run: MakeRun, inline: str
) -> None:
    topic = new_topic(linked, "readings", **REFUSES)
    query = run(linked, topic=topic, eos_inline_bytes=inline, **LATE)
    with (
        linked.nodes[0].link.hold("Produce", ROW),
        pytest.raises(ProduceFailedError, match="too far from the brokers' clock") as error,
    ):
        query.write(value=[ROW])
    assert topic in error.value.message
    assert "max.message.bytes" not in error.value.remedy
    assert not read_topic(linked.bootstrap_servers, topic).values()
