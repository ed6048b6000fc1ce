"""The command `eos-sink`, or `python -m eos_sink`; as a file, `spark-submit` can run it."""

import sys
from pathlib import Path

# Run as a file, Python looks for modules in this package's own directory first.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]


def main() -> int:
    """Run a command and return its exit code, which Ctrl-C makes 130 from the first import on."""
    try:
        # The commands import for a while.
        from eos_sink.cli import main as run_command

        return run_command()
    except KeyboardInterrupt:
        sys.stderr.write("eos-sink: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
