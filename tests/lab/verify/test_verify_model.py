"""What a result says as a whole, and as a report."""

from __future__ import annotations

import json

import pytest

from eos_sink.cli.output import render
from eos_sink_lab.verify.checks import check_doubled
from eos_sink_lab.verify.count_rows import Repeats
from eos_sink_lab.verify.verify_command import build_report
from eos_sink_lab.verify.verify_model import Check, PartitionRead, Status, VerifyResult
from tests.lab.verify.cases import question


@pytest.mark.parametrize(
    ("status", "good"),
    [
        (Status.GOOD, True),
        (Status.UNCHECKED, True),
        (Status.UNPROVEN, True),
        (Status.WRONG, False),
    ],
)
def test_only_what_is_wrong_fails(status: Status, good: bool) -> None:
    check = Check("lost", status, 3, "told", ("17",))
    result = VerifyResult("orders", "key", (check,), (PartitionRead(0, 0, 2, 9, 9, 5),), ("Note.",))
    report = build_report(result)
    assert (result.good, report.ok, report.interrupted) == (good, good, False)
    json.dumps(report.document)
    assert status.value in render(report)
    assert report.document["partitions"][0]["rows"] == 5


def test_a_required_check_that_was_not_made_fails() -> None:
    check = Check("lost", Status.UNCHECKED, 0, "told", required=True)
    report = build_report(VerifyResult("orders", "key", (check,), ()))
    assert not report.ok
    assert "--partial" in render(report)


def test_what_could_not_be_looked_at_again_is_proof_of_numbers_only() -> None:
    found = Repeats(doubled=3)
    by_hash = check_doubled(question(), found, None, "interrupted")
    assert (by_hash.status, by_hash.found) == (Status.UNPROVEN, 3)
    assert "hashes" in by_hash.told
    assert check_doubled(question(numbered=True), found, None, "interrupted").status is Status.WRONG
