"""The names of `eos_sink_lab.testing` are imported on their first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from eos_sink import testing


@pytest.mark.parametrize("name", testing.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(testing, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        testing.start_rabbit  # noqa: B018


@pytest.mark.parametrize(
    ("program", "spared"),
    [
        (
            "import eos_sink_lab.testing.topic_audit",
            ("kafka", "eos_sink_lab.testing.kafka_cluster"),
        ),
        ("from eos_sink_lab.testing import start_kafka", ("pyspark", "eos_sink.spark", "psutil")),
        ("from eos_sink_lab.testing import Faults", ("kafka", "confluent_kafka", "psutil")),
    ],
)
def test_only_what_is_used_is_imported(program: str, spared: tuple[str, ...]) -> None:
    loaded = f"{program}\nimport sys\nprint(*(name for name in {spared} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
