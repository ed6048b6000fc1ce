"""`python -m eos_sink.cli`."""

import sys

from eos_sink.cli import main

sys.exit(main())
