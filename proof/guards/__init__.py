"""Each guard of the protocol, and the tests that fail without it: `make guards`."""
