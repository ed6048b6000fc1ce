"""What the operator commands find out and do; `cli` has their options and output."""


class RefusedChoice(Exception):
    """The evidence forbids what the operator wants; the message says why."""
