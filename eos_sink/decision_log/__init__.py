"""The decision log: a record format and a compare-and-swap register on one compacted topic."""

from eos_sink.decision_log.fenced_errors import (
    Entry,
    check_forward,
    refused_member,
    replaced,
    superseded,
)
from eos_sink.decision_log.register import DecisionRegister

__all__ = [
    "DecisionRegister",
    "Entry",
    "check_forward",
    "refused_member",
    "replaced",
    "superseded",
]
