"""Quoting for printed commands: each name stays one word when the command is pasted."""

from __future__ import annotations

import shlex

_ESCAPED = {"\\": r"\\", "'": r"\'"}


def quote(word: object) -> str:
    """One word of a command line for bash, ksh or zsh. What a terminal does not show as it is (line
    breaks, escape sequences, marks of direction) becomes an escape within $'...'.
    """
    text = str(word)
    return shlex.quote(text) if text.isprintable() else f"$'{''.join(map(_escape, text))}'"


def sink_command(*words: object, options: str = "") -> str:
    """A command of eos-sink.

    Args:
        words: unquoted.
        options: quoted, as `cli.arguments.command_line` makes them.
    """
    return " ".join(["eos-sink", *map(quote, words), options]).rstrip()


def _escape(letter: str) -> str:
    if letter.isprintable():
        return _ESCAPED.get(letter, letter)
    # `\x85` would be a byte, not a letter.
    return ascii(letter)[1:-1] if letter.isascii() else f"\\U{ord(letter):08x}"
