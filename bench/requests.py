"""Counts the requests of a warm batch, from the brokers' logs.

    python -m bench.requests [--version 4.3.0]

Three brokers log each request that they have answered (`kafka.request.logger`). A batch is planned,
written and committed by the sink's own parts, one phase after the other, so that a request belongs
to the phase in which it was logged: batches whose tasks open a transaction each, and batches whose
rows the driver writes. Writes bench/results/requests.json; progress to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench import RESULTS
from bench.query import Query, row_for_each
from bench.result import Label, Notebook
from eos_sink_lab.testing import KafkaCluster, start_kafka
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

TASKS = (1, 2, 4, 8, 16)
INLINE = (1, 2, 200)
PARTITIONS = 6
# Both slots have to be known to the planner too, which looks at a batch when it plans the next.
WARM_UP, BATCHES = 3, 2
IDLE_S = 10.0
_QUIET_S, _LONGEST_S = 0.5, 5.0
_ANSWERED = re.compile(r"Completed request:\s*(\{.*\})\s*$")
_LOGGING = "-Dorg.slf4j.simpleLogger.log.kafka.request.logger=debug"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--version", default="4.3.0", help="of the brokers")
    version = parser.parse_args().version
    # The one way to give a JVM options that the cluster has no argument for.
    os.environ["JAVA_TOOL_OPTIONS"] = _LOGGING
    with start_kafka(3, version) as kafka:
        del os.environ["JAVA_TOOL_OPTIONS"]
        assert isinstance(kafka, LocalCluster)
        log, notebook = RequestLog(kafka), Notebook("requests", version, {"batches": BATCHES})
        for inline, tasks in [*((False, n) for n in TASKS), *((True, n) for n in INLINE)]:
            count(kafka, log, notebook, tasks, inline)
            to_stderr(f"{tasks} tasks, inline: {inline}")
            notebook.result().write(RESULTS / "requests.json")
    return 0


def count(
    kafka: KafkaCluster, log: RequestLog, notebook: Notebook, tasks: int, inline: bool
) -> None:
    """Record the requests of each phase and API, one sample per batch."""
    query = Query(kafka, PARTITIONS, {} if inline else {"eos.inline.bytes": "0"})
    found: dict[tuple[str, str, str], list[int]] = {}
    for batch in range(WARM_UP + BATCHES):
        log.take()
        plan = query.planner.plan()
        phases = {"plan": log.take()}
        reports = query.write(plan, [row_for_each(PARTITIONS)] * tasks)
        phases["tasks"] = log.take()
        query.committer.commit(reports)
        phases["commit"] = log.take()
        if batch >= WARM_UP:
            for phase, counted in phases.items():
                for (client, api), times in counted.items():
                    place = found.setdefault((phase, client, api), [0] * BATCHES)
                    place[batch - WARM_UP] = times
    if tasks == TASKS[0] and not inline:
        log.take()
        time.sleep(IDLE_S)
        for (client, api), times in log.take().items():
            notebook.note("idle", "1/s", times / IDLE_S, client=client, api=api)
    for (phase, client, api), samples in sorted(found.items()):
        labels: dict[str, Label] = {"phase": phase, "client": client, "api": api}
        notebook.note("requests", "", *samples, tasks=tasks, inline=inline, **labels)
    query.close()


class RequestLog:
    """Requests in the brokers' logs since the last call."""

    def __init__(self, kafka: LocalCluster) -> None:
        self._logs = {kafka.directory / f"node-{node.id}" / "node.log": 0 for node in kafka.brokers}

    def take(self) -> Counter[tuple[str, str]]:
        """Count requests by client ("librdkafka", "kafka-python" or "broker") and API, once no new
        request has come for a while. Requests between brokers count only if a transaction causes
        them."""
        found: Counter[tuple[str, str]] = Counter()
        quiet_at, end = time.monotonic() + _QUIET_S, time.monotonic() + _LONGEST_S
        while time.monotonic() < min(quiet_at, end):
            time.sleep(_QUIET_S / 10)
            new = [asked for log in self._logs for asked in self._read(log)]
            if new:
                found.update(new)
                quiet_at = time.monotonic() + _QUIET_S
        return found

    def _read(self, log: Path) -> Iterator[tuple[str, str]]:
        with log.open("rb") as file:
            file.seek(self._logs[log])
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._logs[log] += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            asked = _request(line)
            if asked is not None:
                yield asked


_OF_TRANSACTIONS = {"WRITE_TXN_MARKERS", "ADD_PARTITIONS_TO_TXN"}


def _request(line: str) -> tuple[str, str] | None:
    answered = _ANSWERED.search(line)
    if answered is None:
        return None
    document = json.loads(answered.group(1))
    header = document["requestHeader"]
    api, software = str(header["requestApiKeyName"]), document["clientInformation"]["softwareName"]
    # The first request of a connection comes before the broker knows the software; the sink's
    # look at the brokers' versions tells them another name.
    if software == "confluent-kafka-python" or header["clientId"] == "rdkafka":
        return "librdkafka", api
    if software in {"kafka-python", "eos-sink"} or header["clientId"].startswith("kafka-python"):
        return "kafka-python", api
    return ("broker", api) if api in _OF_TRANSACTIONS else None


if __name__ == "__main__":
    sys.exit(main())
