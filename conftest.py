"""What all tests need of the process that runs them."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests import seeds

# Tests send Ctrl-C to commands, which would ignore it as pytest does in the background of a shell.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Draw the seed of what plays at random; pytest-xdist's workers inherit it."""
    os.environ.setdefault("EOS_SEED", str(time.time_ns() % 10**9))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark the rows of sampled tests that this run has not drawn as long, before anything asks."""
    families: defaultdict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and item.get_closest_marker("long") is None:
            test = item.nodeid.partition("[")[0]
            families[mark.kwargs.get("of", test), mark.args[0]].append(item)
    short = config.getoption("markexpr") == "not long"
    for (name, count), rows in families.items():
        drawn = seeds.chance(name).sample(rows, min(count, len(rows))) if short else []
        for row in set(rows).difference(drawn):
            row.add_marker("long")
    yield


def pytest_report_header() -> str:
    return f"seed: {os.environ['EOS_SEED']} (EOS_SEED repeats it)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if {"failed", "error"} & terminalreporter.stats.keys():
        terminalreporter.write_line(pytest_report_header())
