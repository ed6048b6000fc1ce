"""`python -m eos_sink.testing TOPIC ...`: a Kafka with these topics, until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys

from eos_sink_lab.testing import TestClusterError, start_kafka

_PARTITIONS = 4


def main() -> None:
    """Start Kafka, and keep it until SIGINT or SIGTERM; its data goes with it."""
    parser = argparse.ArgumentParser(
        prog="python -m eos_sink.testing",
        description="Start a Kafka on this machine, and keep it until Ctrl-C. Its data is removed.",
    )
    add = parser.add_argument
    help_ = f"Create these topics, with {_PARTITIONS} partitions each."
    add("topics", nargs="*", metavar="TOPIC", help=help_)
    help_ = "Port of the first broker; others have the next ones. Default: %(default)s."
    add("--port", type=int, default=9092, help=help_)
    help_ = "Number of brokers: 1, or 3 for three copies of each record. Default: %(default)s."
    add("--brokers", type=int, default=1, help=help_)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with start_kafka(arguments.brokers, port=arguments.port) as kafka:
            for topic in arguments.topics:
                kafka.create_topic(topic, partitions=_PARTITIONS)
            sys.stdout.write(f"Kafka runs at {kafka.bootstrap_servers} until Ctrl-C.\n")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except TestClusterError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
