"""The decision log: a record format and a compare-and-swap register on one compacted topic."""

from eos_sink.log.register import DecisionRegister, Entry, refused_member, superseded

__all__ = ["DecisionRegister", "Entry", "refused_member", "superseded"]
