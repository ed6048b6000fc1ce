"""The decision log: a compare-and-swap register on a compacted topic, and its record format."""

from eos_sink.decision_log.register import DecisionRegister
from eos_sink.protocol.model import LogEntry

__all__ = ["DecisionRegister", "LogEntry"]
