"""Runs a query under all faults, from a seed: `make chaos`. See docs/internals/chaos.md."""
