"""Each guard of the protocol, and what notices when it is taken away: `make guards`."""
