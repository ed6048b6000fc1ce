"""From the start of a process to its first batch: Spark, its Python processes, and the sink's part.

    python -m bench.restart [--rounds N]

A turn is a process of its own that makes a Spark session and writes a batch of 1,000 rows in 2
tasks, and then a second process that goes on from the first one's checkpoint, as after a crash. A
round is a turn of each sink, in an order that changes from round to round. Everything is on this
machine. Writes bench/results/restart.json and prints a table; `python -m bench.publish` puts it
into bench/results/README.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import RESULTS
from bench.broker import start_broker, topic_for
from bench.pages.restart import NAME, PEERS, lines
from bench.result import Notebook
from bench.spark_turns import read_numbers, start_spark, wait_batch
from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.local_cluster import LocalCluster
from eos_sink_lab.testing.waiting import to_stderr

CORES, ROWS = 2, 1_000
_TURN_S = 120.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--once", nargs=4, metavar=("PEER", "SERVERS", "TOPIC", "CHECKPOINT"))
    parsed = parser.parse_args(arguments)
    if parsed.once:
        _write_batch(*parsed.once)
        return 0
    with start_broker("4.3.0", to_stderr) as kafka:
        notebook = Notebook(NAME, kafka.version, {"rounds": parsed.rounds, "cores": CORES})
        # The first processes fill the machine's file cache.
        _turn(kafka, PEERS[0], Notebook(NAME, kafka.version, {}))
        for number in range(parsed.rounds):
            for peer in PEERS[:: 1 if number % 2 == 0 else -1]:
                _turn(kafka, peer, notebook)
                # Each time, so that a run that is ended early has shown something.
                notebook.result().write(RESULTS / f"{NAME}.json")
    print("\n".join(lines({NAME: notebook.result()})))
    return 0


def _turn(kafka: LocalCluster, peer: str, notebook: Notebook) -> None:
    """Start a query, and start it again.

    Raises:
        subprocess.SubprocessError: a process has failed or takes too long.
    """
    with (
        topic_for(kafka, f"restart-{time.time_ns()}", CORES) as topic,
        tempfile.TemporaryDirectory(prefix="eos-bench-") as home,
    ):
        servers = kafka.bootstrap_servers
        command = (sys.executable, "-m", f"bench.{NAME}", "--once", peer, servers, topic, home)
        for again in (False, True):
            began = time.time()
            done = subprocess.run(command, stdout=subprocess.PIPE, timeout=_TURN_S, check=True)
            at = json.loads(done.stdout.splitlines()[-1])
            took = {step: round((when - began) * 1000) for step, when in at.items()}
            for step, ms in took.items():
                notebook.note(step, "ms", ms, peer=peer, again=again)
            to_stderr(f"{peer}, again {again}: {took}")


def _write_batch(peer: str, servers: str, topic: str, checkpoint: str) -> None:
    """In a process of its own: write one batch, and print when the session and it were there."""
    spark = start_spark(CORES)
    at = {"session": time.time()}
    rows = read_numbers(spark, ROWS, CORES).selectExpr("CAST(value AS STRING) AS value")
    options = {"kafka.bootstrap.servers": servers, "topic": topic}
    known = len(list(Path(checkpoint).glob("commits/[0-9]*")))
    writer = rows.writeStream.format(peer).options(**options)
    query = writer.option("checkpointLocation", checkpoint).start()
    wait_batch(query, peer, known, Deadline(_TURN_S))
    at["batch"] = time.time()
    query.stop()
    print(json.dumps(at), flush=True)
    spark.stop()


if __name__ == "__main__":
    sys.exit(main())
