"""`eos-sink bench`: measure the sink beside Spark's own, on this machine or on a given cluster."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from eos_sink.cli.arguments import add_brokers, kafka_settings, positive, whole
from eos_sink.cli.output import Cell, CommandError, Report, require_libraries
from eos_sink.errors import EosSinkError

if TYPE_CHECKING:
    from eos_sink.bench.result import Result
    from eos_sink.bench.run import BenchOptions

NAME = "bench"
HELP = "Measure the sink beside Spark's own Kafka sink; ten minutes at most."
EXAMPLES = """\
examples:
  eos-sink bench                                     on a broker that is started for it
  eos-sink bench --bootstrap-server kafka:9092 --command-config client.properties
  eos-sink bench --rows 1000 --batches 40            small batches: what a batch costs
  eos-sink bench --rows 1000000 --kafka-option compression.type=lz4 --samples bench.json

On a given cluster it creates topics, a decision log and a consumer group, whose names begin with
eos-sink-bench-, and deletes them; what it writes to --topic stays. Kafka remembers the names of its
transactional ids for a week.
"""

_BOOTSTRAP, _COMPRESSION = "bootstrap.servers", "compression.type"
_NAMES = {"kafka-eos": "kafka-eos", "kafka": "Spark's own", "eos-sink-floor": "no sink at all"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options. Without a server a broker is started here."""
    add_brokers(parser, needed=False)
    parser.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=VALUE",
        help="a property for the Kafka clients, beside or in place of those of FILE",
    )
    parser.add_argument("--topic", help="write there; without it topics are created and deleted")
    for name, kind, default, meaning in (
        ("--rows", positive, 100_000, "in a batch"),
        ("--value-bytes", positive, 100, "of a value"),
        ("--key-bytes", whole, 0, "of a key, 0 for no keys"),
        ("--headers", whole, 0, "of a record"),
        ("--partitions", positive, 6, "of a topic that it creates"),
        ("--tasks", positive, 2, "at the same time"),
        ("--batches", positive, 12, "in a turn of a sink"),
        ("--warm-up", positive, 4, "of these batches, not measured"),
        ("--rounds", positive, 3, "turns of each sink"),
    ):
        text = f"{meaning} ({default:,})"
        parser.add_argument(name, type=kind, default=default, metavar="N", help=text)
    parser.add_argument(
        "--time-limit", type=positive, default=600, metavar="S", help="seconds at most (600)"
    )
    parser.add_argument(
        "--samples", type=Path, metavar="FILE", help="write every sample there, as JSON"
    )


def run(arguments: argparse.Namespace) -> Report:
    """Measure and report.

    Raises:
        CommandError: it cannot be measured; the message says why.
    """
    require_libraries("the benchmark", "spark", "pyspark")
    options = parse_arguments(arguments)
    # Imported here: other commands need neither Spark nor the Kafka clients.
    from eos_sink.bench.run import BenchError, run_bench
    from eos_sink.testing import TestClusterError
    from eos_sink.testing.waiting import to_stderr

    try:
        result = run_bench(options, to_stderr)
    except (BenchError, EosSinkError, TestClusterError) as error:
        raise CommandError(str(error)) from error
    if arguments.samples is not None:
        try:
            result.write(arguments.samples)
        except OSError as error:
            raise CommandError(f"--samples {arguments.samples}: {error.strerror}") from error
    return make_report(result)


def parse_arguments(arguments: argparse.Namespace) -> BenchOptions:
    """The options of the benchmark.

    Raises:
        CommandError: arguments contradict each other, or FILE cannot be read.
    """
    from eos_sink.bench.run import BenchOptions
    from eos_sink.bench.shape import Shape

    kafka = {**kafka_settings(arguments), **dict(arguments.kafka_option)}
    if arguments.bootstrap_server:
        kafka[_BOOTSTRAP] = arguments.bootstrap_server
    if _BOOTSTRAP not in kafka and arguments.topic is not None:
        raise CommandError("--topic needs --bootstrap-server: a broker started here has no topics")
    try:
        shape = Shape(
            name=f"{arguments.rows:,} rows of {arguments.value_bytes} B",
            rows=arguments.rows,
            batches=arguments.batches,
            warm_up=arguments.warm_up,
            value_bytes=arguments.value_bytes,
            key_bytes=arguments.key_bytes,
            headers=arguments.headers,
            partitions=arguments.partitions,
            compression=kafka.pop(_COMPRESSION, "none"),
        )
    except ValueError as error:
        raise CommandError(f"--batches and --warm-up: {error}") from error
    seconds = float(arguments.time_limit)
    return BenchOptions(kafka, arguments.topic, shape, arguments.rounds, arguments.tasks, seconds)


def make_report(result: Result) -> Report:
    """A row for each sink, and how they compare."""
    parts = list(dict.fromkeys(str(each.labels["whose"]) for each in result.having("cpu")))
    columns = ("", "rows/s", "MB/s", "median ms", "p95 ms", *(f"CPU {part}" for part in parts))
    shape = result.parameters
    rows = []
    for peer, name in _NAMES.items():
        if not list(result.having("addBatch", peer=peer)):
            continue
        times = result.one("addBatch", peer=peer).spread
        rows_per_s = shape["rows"] * 1000 / times.median
        megabytes = rows_per_s * (shape["value_bytes"] + shape["key_bytes"]) / 1e6
        used = [result.one("cpu", peer=peer, whose=part).spread.median for part in parts]
        cells = (
            name,
            f"{rows_per_s:,.0f}",
            f"{megabytes:.1f}",
            f"{times.median:,.0f}",
            f"{times.p95:,.0f}",
            *(f"{seconds:.2f}" for seconds in used),
        )
        rows.append(tuple(Cell(text) for text in cells))
    document = json.loads(result.to_json())
    return Report(columns, tuple(rows), tuple(_notes(result)), ok=True, document=document)


def _notes(result: Result) -> Iterator[str]:
    from eos_sink.bench.result import ratio

    shape, machine = result.parameters, result.machine
    yield (
        f"Batches of {shape['rows']:,} rows of {shape['value_bytes']} bytes. Times are Spark's "
        "addBatch of warm batches; CPU is seconds for a million rows."
    )
    ours, theirs = (list(result.having("addBatch", peer=name)) for name in ("kafka-eos", "kafka"))
    if theirs:
        times = ratio(theirs[0].samples, ours[0].samples)
        added = ours[0].spread.median - theirs[0].spread.median
        yield (
            f"kafka-eos writes {times.median:.2f} times the rows of Spark's own sink in the same "
            f"time (nine of ten pairs of batches: {times.p5:.2f} to {times.p95:.2f}) and adds "
            f"{added:+,.0f} ms to a batch."
        )
    else:
        yield "Spark's own Kafka sink could not be downloaded: there is nothing to compare with."
    where = "the broker included" if shape["own_broker"] else "the brokers not counted"
    yield (
        f"{machine['cores']} cores ({machine['processor']}), {where}; load {machine['load'][0]} "
        "at the end."
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip().removeprefix("kafka."), value.strip()
