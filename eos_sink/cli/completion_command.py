"""`eos-sink completion`: a completion script for a shell."""

from __future__ import annotations

import argparse

from eos_sink.cli.exit_codes import ExitCode
from eos_sink.cli.output import Report, require_libraries

NAME = "completion"
HELP = "Print a script with which a shell completes commands and options."
EXAMPLES = """\
examples:
  eos-sink completion bash > ~/.local/share/bash-completion/completions/eos-sink
  eos-sink completion zsh > "${fpath[1]}/_eos-sink"
"""
EXIT_CODES = {ExitCode.OK: "the script was printed"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "shell", choices=("bash", "zsh", "tcsh"), help="Shell that the script is for."
    )


def run(arguments: argparse.Namespace) -> Report:
    """Return the script.

    Raises:
        CommandError: shtab is not installed.
    """
    require_libraries("completion", "cli", "shtab")
    import shtab

    from eos_sink.cli import parser

    script = shtab.complete(parser(), arguments.shell)
    document = {"shell": arguments.shell, "script": script}
    return Report((), (script,), ok=True, document=document, lines=True)
