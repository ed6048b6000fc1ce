"""KIP-609's EOSPerformance: poll, process, produce over real topics, exactly once.

    python -m bench.eos_performance loops|spark [--rounds N] [--out FILE]

`loops` plays plain client loops, with librdkafka and with two Java clients; `spark` the same
through Spark's own Kafka source, into `kafka-eos` and into Spark's own sink. A round of each takes
less than four minutes. `python -m bench.publish` brings the results to docs/performance.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import RESULTS
from bench.eos import loops, streams
from eos_sink_lab.testing import start_kafka
from eos_sink_lab.testing.waiting import to_stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("loops", "spark"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--version", default="4.3.0", help="of the broker")
    parser.add_argument("--out", type=Path, help="default: bench/results/eos-<what>.json")
    arguments = parser.parse_args()
    with start_kafka(version=arguments.version) as kafka:
        measure = loops.measure if arguments.what == "loops" else streams.measure
        found = measure(kafka, arguments.rounds)
    there = arguments.out or RESULTS / f"eos-{arguments.what}.json"
    found.write(there)
    to_stderr(str(there))
    return 0


if __name__ == "__main__":
    sys.exit(main())
