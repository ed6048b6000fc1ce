"""What all tests need of the process that runs them."""

from __future__ import annotations

import os
import signal
import time

import pytest

# Tests send Ctrl-C to commands, which would ignore it as pytest does in the background of a shell.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Draw the seed of what plays at random; pytest-xdist's workers inherit it."""
    os.environ.setdefault("EOS_SEED", str(time.time_ns() % 10**9))


def pytest_report_header() -> str:
    return f"seed: {os.environ['EOS_SEED']} (EOS_SEED repeats it)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if {"failed", "error"} & terminalreporter.stats.keys():
        terminalreporter.write_line(pytest_report_header())
