"""What starts in a fraction of a second does so because it imports next to nothing."""

from __future__ import annotations

import pytest

from tests.imported import FOR_ROWS, imported

CLIENTS = ["confluent_kafka", "kafka", "tenacity"]
FOR_OPERATORS = ["eos_sink.ops", "eos_sink.kafka.admin_interface"]


@pytest.mark.parametrize("command", [["--help"], ["status", "--help"], ["resolve", "--help"]])
def test_help_imports_no_client_and_nothing_for_rows(command: list[str]) -> None:
    program = (
        "import contextlib\nfrom eos_sink import cli\n"
        f"with contextlib.suppress(SystemExit): cli.main({command})"
    )
    assert imported(program).isdisjoint([*CLIENTS, *FOR_ROWS, "pyspark"])


def test_the_lookup_of_the_format_imports_no_client_and_nothing_for_rows() -> None:
    """Spark does that in its Python processes, whatever format a query asks for."""
    found = imported("from pyspark_kafka_eos import DefaultSource; DefaultSource.name()")
    assert found.isdisjoint([*CLIENTS, *FOR_ROWS])
    assert {name for name in found if name.startswith("eos_sink")} == {
        "eos_sink",
        "eos_sink.errors",
        "eos_sink.identity",
        "eos_sink.spark",
        "eos_sink.spark.client_cache",
        "eos_sink.spark.data_source",
        "eos_sink.spark.session_defaults",
    }


def test_the_rules_of_the_protocol_import_nothing_but_values_and_text() -> None:
    found = imported("import eos_sink.protocol.rules")
    pure = "errors", "identity", "messages", "metrics", "protocol", "shell", "version"
    assert {name.split(".")[1] for name in found if name.startswith("eos_sink.")} == {*pure}
    assert found.isdisjoint([*CLIENTS, *FOR_ROWS, "eos_sink.metrics.events", "logging"])


@pytest.mark.parametrize("module", ["planner", "committer"])
def test_the_driver_imports_nothing_for_rows_and_nothing_for_operators(module: str) -> None:
    program = f"import eos_sink.driver.{module}, eos_sink.kafka.cluster, eos_sink.task.schema"
    found = imported(program)
    assert found.isdisjoint([name for name in FOR_ROWS if name != "eos_sink.task"])
    assert found.isdisjoint([*FOR_OPERATORS, "eos_sink.driver.check_destinations", "difflib"])


def test_a_task_imports_no_kafka_python_and_nothing_for_operators() -> None:
    found = imported("import eos_sink.task.writer, eos_sink.kafka.cluster")
    assert found.isdisjoint([*FOR_OPERATORS, "kafka"])


def test_status_imports_nothing_for_rows() -> None:
    modules = (
        "cli.status_command",
        "ops.observer",
        "ops.alerts",
    )
    program = "import eos_sink.kafka.admin.confluent_admin, eos_sink.kafka.transaction_control\n"
    program += "\n".join(f"import eos_sink.{module}" for module in modules)
    assert imported(program).isdisjoint([*FOR_ROWS, "pyspark"])
