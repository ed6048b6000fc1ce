"""`python -m eos_sink`; and as a file, `spark-submit` can run it."""

import sys
from pathlib import Path

# Run as a file, Python looks for modules in this package's own directory first.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]

from eos_sink.cli import main  # noqa: E402 - only now may anything be imported

if __name__ == "__main__":
    sys.exit(main())
