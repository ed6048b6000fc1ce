"""Versions of Python and its libraries: the bounds are those of setup.cfg."""

from __future__ import annotations

import configparser
import re
from dataclasses import replace

import pytest

from eos_sink.ops.doctor.findings import Level, judge
from eos_sink.ops.doctor.python import (
    LIBRARIES,
    OPTIONAL,
    Python,
    check_clients,
    is_supported,
    make_look,
    this_python,
)
from tests.ops.doctor.cases import PYTHON
from tests.snippets import ROOT


def required() -> dict[str, list[str]]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    bounds = {}
    for line in setup["options"]["install_requires"].split():
        bounds[re.split("[<>=]", line)[0]] = [lowest(line), below(line)]
    # One extra for Spark 3.5, one for newer ones.
    bounds["pyspark"] = [lowest(extras["spark35"].partition("pyspark")[2]), below(extras["spark"])]
    return bounds


def lowest(line: str) -> str:
    return "".join(re.findall(r">=([\d.]+)", line)[:1])


def below(line: str) -> str:
    return "".join(re.findall(r"<([\d.]+)", line))


def test_the_bounds_are_those_of_the_package() -> None:
    bounds = {name: bounds for name, (_, *bounds) in LIBRARIES.items() if name != "eos-sink"}
    assert bounds == required()


@pytest.mark.parametrize(
    ("version", "fine"),
    [("2.16", True), ("2.16.1", True), ("2.9.9", False), ("3.0.0", False), ("", False)],
)
def test_a_version_is_compared_with_the_bounds(version: str, fine: bool) -> None:
    assert is_supported("confluent-kafka", version) is fine
    assert is_supported("pyspark", "") is ("pyspark" in OPTIONAL)


def wrong(**changes: object) -> str:
    (found,) = judge(check_clients(replace(PYTHON, **changes)))  # type: ignore[arg-type]
    return "" if found.level is Level.OK else f"{found.what} | {' '.join(found.remedy)}"


def test_a_wrong_version_is_reported_with_the_command_that_repairs_it() -> None:
    assert wrong() == ""
    assert wrong(versions={"pyarrow": "9.0.0"}).startswith("pyarrow 9.0.0; the sink is made for 15")
    text = wrong(versions={"kafka-python": ""})
    assert text.startswith("kafka-python is not installed")
    assert text.endswith("/opt/venv/bin/python -m pip install 'kafka-python>=3.0.12,<4'")
    assert "Python 3.9.2" in wrong(version="3.9.2")
    assert "numpy: ImportError: no" in wrong(error="numpy: ImportError: no")
    assert "one by one" in next(check_clients(replace(PYTHON, native=False))).meaning


def test_this_python_has_all_that_the_sink_needs() -> None:
    here: Python = this_python()
    assert [each.level for each in judge(check_clients(here))] == [Level.OK]
    assert here.librdkafka
    assert here.native


def test_a_host_that_refuses_connections_is_unreachable() -> None:
    seen = make_look(["127.0.0.1:1"])()
    assert seen["unreachable"] == {"127.0.0.1:1": "Connection refused"}
    assert seen["login"] == ""
