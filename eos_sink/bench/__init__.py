"""Measuring: the machine, series of samples and their spread, CPU seconds; `eos-sink bench`."""
