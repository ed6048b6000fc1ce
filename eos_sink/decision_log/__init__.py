"""The decision log: a record format and a compare-and-swap register on one compacted topic."""

from eos_sink.decision_log.register import DecisionRegister, check_forward
from eos_sink.protocol.model import Entry

__all__ = ["DecisionRegister", "Entry", "check_forward"]
