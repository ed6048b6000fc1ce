"""Streams that suffer every fault there is, from a seed; `make chaos`. See docs/chaos.md."""
