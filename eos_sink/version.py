"""The version of this package: its installation would tell, but that takes a task too long."""

VERSION = "0.2.0.dev0"  # As in setup.cfg.
