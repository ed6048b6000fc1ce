"""Finds out and does what the operator commands are for; `cli` has their options and output."""


class RefusedChoice(Exception):
    """The evidence forbids what the operator wants; the message says why."""
