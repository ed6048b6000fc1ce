"""`eos-sink bench`: what is asked for is what is measured, and the table says what it came to."""

from __future__ import annotations

from pathlib import Path

import pytest

from eos_sink import cli
from eos_sink.bench.result import Result, Series
from eos_sink.bench.run import BenchOptions
from eos_sink.cli.bench import make_report, parse_arguments
from eos_sink.cli.output import CommandError, render


def options(*arguments: str) -> BenchOptions:
    return parse_arguments(cli.parser().parse_args(["bench", *arguments]))


def test_without_a_server_a_broker_is_started() -> None:
    found = options()
    assert not found.kafka
    assert found.topic is None
    assert found.shape.rows == 100_000


def test_settings_come_from_the_file_and_single_ones_win(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1\nclient.id=file\nsecurity.protocol=SSL\n")
    found = options(
        "--command-config", str(file), "--kafka-option", "client.id=x", "--bootstrap-server", "b:2"
    )
    assert found.kafka == {
        "bootstrap.servers": "b:2",
        "client.id": "x",
        "security.protocol": "SSL",
    }


def test_a_setting_may_be_written_as_a_query_has_it() -> None:
    found = options(
        "--kafka-option", "kafka.compression.type=zstd", "--topic", "t", "--bootstrap-server", "b:2"
    )
    assert found.shape.compression == "zstd"
    assert found.shape.options["kafka.compression.type"] == "zstd"
    assert found.topic == "t"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topic", "t"], "--topic needs --bootstrap-server"),
        (["--batches", "3", "--warm-up", "3"], "of 3 batches 3 cannot be the warm-up"),
        (["--command-config", "/nowhere"], "--command-config /nowhere"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        options(*arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rows", "0"], "'0' is not a whole number above 0"),
        (["--rows", "-5"], "'-5' is not a whole number"),
        (["--rows", "many"], "'many' is not a whole number"),
        (["--kafka-option", "acks"], "'acks' is not NAME=VALUE"),
    ],
)
def test_bad_input_is_reported(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def result(*peers: str) -> Result:
    times = {"kafka-eos": (100.0, 100.0, 100.0), "kafka": (150.0, 120.0, 90.0)}
    series = [Series("addBatch", "ms", {"peer": peer}, times[peer]) for peer in peers]
    series += [Series("cpu", "s/Mrow", {"peer": peer, "whose": "broker"}, (0.5,)) for peer in peers]
    told = {"rows": 1000, "value_bytes": 92, "key_bytes": 8, "own_broker": True}
    machine = {"cores": 2, "processor": "a processor", "load": [1.0, 1.0, 1.0]}
    return Result("bench", "2026-01-31T12:00Z", machine, told, tuple(series))


def test_the_table_compares() -> None:
    text = render(make_report(result("kafka-eos", "kafka")))
    (ours,) = (line.split() for line in text.splitlines() if line.startswith("kafka-eos  "))
    assert ours == ["kafka-eos", "10,000", "1.0", "100", "100", "0.50"]
    assert "kafka-eos writes 1.20 times the rows of Spark's own sink" in text
    assert "adds -20 ms to a batch" in text


def test_without_spark_s_own_sink_it_says_so() -> None:
    text = render(make_report(result("kafka-eos")))
    assert "nothing to compare with" in text
