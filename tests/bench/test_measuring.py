"""Samples come to the right numbers, and a result survives being kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cpu import Account, CpuClock, Part
from bench.result import Notebook, Result, Spread, ratio, spread, surroundings


def test_a_spread_is_of_the_ordered_samples() -> None:
    assert spread([5, 1, 4, 2, 3]) == Spread(n=5, median=3, p5=1.2, p95=4.8)


def test_one_sample_is_a_spread() -> None:
    assert spread([7.0]) == Spread(n=1, median=7.0, p5=7.0, p95=7.0)


def test_no_samples_are_none() -> None:
    with pytest.raises(ValueError, match="samples"):
        spread([])


def test_a_ratio_sets_neighbours_against_each_other() -> None:
    # Both slow down tenfold: the ratio does not.
    assert ratio([2, 20, 200], [1, 10, 100]) == Spread(n=3, median=2, p5=2, p95=2)


def test_a_ratio_leaves_out_samples_without_a_partner() -> None:
    assert ratio([2, 4, 1000], [1, 2]).n == 2


def test_a_result_reads_back_as_it_was(tmp_path: Path) -> None:
    notebook = Notebook("sinks", "4.3.0", {"rounds": 2})
    notebook.note("addBatch", "ms", 1.23456789, 2, peer="kafka", rows=1000)
    notebook.note("addBatch", "ms", 5, peer="kafka-eos", rows=1000)
    notebook.note("addBatch", "ms", 3, peer="kafka", rows=1000)
    notebook.note("nothing", "s", peer="kafka")
    result = notebook.result()
    result.write(tmp_path / "some" / "sinks.json")
    assert Result.read(tmp_path / "some" / "sinks.json") == result
    assert result.one("addBatch", peer="kafka").samples == (1.2346, 2, 3)
    assert len(list(result.having("addBatch", rows=1000))) == 2
    with pytest.raises(LookupError, match="addBatch"):
        result.one("addBatch", rows=1000)


def test_the_surroundings_name_what_takes_part() -> None:
    found = surroundings("4.3.0")
    assert found["cores"] == os.cpu_count()
    assert found["versions"]["kafka"] == "4.3.0"
    assert found["versions"]["librdkafka"].count(".") >= 2


BUSY = "import os\nwhile sum(os.times()[:2]) < 0.3: pass\n"
BUSY_UNTIL_TOLD = BUSY + "print(flush=True)\ninput()"
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BUSY!r}], check=True)
below = subprocess.Popen([sys.executable, "-c", {BUSY_UNTIL_TOLD!r}],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
below.stdout.readline()
print(flush=True)
input()
below.communicate(b"\\n")
"""


MIDDLE = f"""
import subprocess, sys
leaf = subprocess.Popen([sys.executable, "-c", {BUSY_UNTIL_TOLD!r}],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
leaf.stdout.readline()
print(flush=True)
input()
"""
ABOVE = f"""
import subprocess, sys
middle = subprocess.Popen([sys.executable, "-c", {MIDDLE!r}],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
middle.stdout.readline()
print(flush=True)
input()
middle.kill()
middle.wait()
print(flush=True)
input()
"""
IGNORING = f"""
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
{MIDDLE}
leaf.kill()
leaf.wait()
print(flush=True)
input()
"""
WAITED = IGNORING.replace("SIG_IGN", "SIG_DFL")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="this system has no /proc"
)


@needs_proc
@pytest.mark.parametrize(
    "program", [ABOVE, IGNORING, WAITED], ids=["its parent is killed", "ignored", "waited for"]
)
def test_an_ended_process_stays_in_the_sum_once(program: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as above:
        assert above.stdin is not None
        assert above.stdout is not None
        above.stdout.readline()
        clock = CpuClock({"below": [Account(above.pid, Part.BELOW)]})
        before = clock.read()
        assert before["below"] >= 0.3
        above.stdin.write(b"\n")
        above.stdin.flush()
        above.stdout.readline()
        assert 0 <= clock.read()["below"] - before["below"] < 0.3
        above.communicate(b"\n")


@needs_proc
def test_children_are_counted_dead_or_alive() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        clock = CpuClock({part.value: [Account(parent.pid, part)] for part in Part})
        found = clock.read()
        parent.communicate(b"\n")
    assert found["below"] >= 0.6 > found["own"]
    assert found["all"] == pytest.approx(found["own"] + found["below"])


def test_a_process_that_is_gone_counts_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert CpuClock({"gone": [Account(gone.pid)]}).read().get("gone", 0) == 0
