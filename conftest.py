"""What all tests need of the process that runs them."""

from __future__ import annotations

import signal

# Tests send Ctrl-C to commands, which would ignore it as pytest does in the background of a shell.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
