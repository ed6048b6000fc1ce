"""Numbers on a command line, as argparse takes the types of options."""

from __future__ import annotations

import argparse


def whole(text: str) -> int:
    """0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def positive(text: str) -> int:
    """1 or more."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def seconds(text: str) -> float:
    """0 or more."""
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return found


def some_seconds(text: str) -> float:
    """More than 0."""
    found = seconds(text)
    if not found:
        raise argparse.ArgumentTypeError("it takes more than 0 seconds")
    return found
