"""The decision log: a compare-and-swap register on a compacted topic, and its record format."""

from eos_sink.decision_log.driver_id import describe_driver, explain_wait
from eos_sink.decision_log.other_logs import check_no_logs, find_logs
from eos_sink.decision_log.register import DecisionRegister, check_current, check_forward, undecided
from eos_sink.protocol.model import Entry

__all__ = [
    "DecisionRegister",
    "Entry",
    "check_current",
    "check_forward",
    "check_no_logs",
    "describe_driver",
    "explain_wait",
    "find_logs",
    "undecided",
]
