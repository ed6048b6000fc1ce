"""The parser of a command: its help, and what a mistyped word was probably meant to be."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from eos_sink.cli.exit_codes import ExitCode, describe_exit_codes
from eos_sink.cli.output import print_error


class CommandParser(argparse.ArgumentParser):
    """Parses the words of one command, or those up to the name of a command."""

    def __init__(self, **given: Any) -> None:
        super().__init__(
            add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter, **given
        )
        self.register("type", None, _text)  # Of each option that names no type.
        self.add_argument("-h", "--help", action="help", help="Show this help and exit.")
        self._words: Sequence[str] = ()
        self._commands: argparse._SubParsersAction[CommandParser] | None = None

    def add_commands(self) -> None:
        """Expect the name of a command, which becomes the attribute `command` of the arguments."""
        self.register("type", None, str)  # That command's parser judges the words behind it.
        self._commands = self.add_subparsers(title="commands", dest="command", metavar="COMMAND")

    def add_command(
        self, name: str, help_: str, examples: str, exit_codes: Mapping[ExitCode, str]
    ) -> CommandParser:
        """Add one of the commands that `add_commands` expects.

        Args:
            examples: lines of its help, with a line break at the end.
        """
        epilog = f"{examples}\n{describe_exit_codes(exit_codes)}\n"
        assert self._commands is not None
        return self._commands.add_parser(name, help=help_, description=help_, epilog=epilog)

    @property
    def commands(self) -> Collection[CommandParser]:
        """The parsers of the commands."""
        return [] if self._commands is None else self._commands.choices.values()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, and refuse what is not known: argparse would let the parser of all commands do it,
        which knows no option of this one."""
        self._words = sys.argv[1:] if args is None else list(args)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Exit, and name the option or command that is nearest to one that does not exist."""
        near = next(self._nearest(), None)
        said = message if near is None else f"{message}. Did you mean {near}?"
        if "--json" in self._words:
            print_error(said)
        super().error(said)

    def _nearest(self) -> Iterator[str]:
        options = [each for each in self._option_string_actions if each.startswith("--")]
        commands = [] if self._commands is None else list(self._commands.choices)
        for word in self._words:
            if word in commands:
                return  # Its parser has the words that follow.
            name = word.partition("=")[0]
            if name.startswith("--"):
                # An option may be shortened.
                known = [] if any(each.startswith(name) for each in options) else options
            else:
                known = commands
            yield from difflib.get_close_matches(name, known, n=1)


def _text(text: str) -> str:
    """An empty value, of a variable that is not set, is a mistake."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8") from None
    return text
