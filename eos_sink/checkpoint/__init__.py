"""Spark's checkpoint directory, read without a JVM."""

from eos_sink.checkpoint.directory import Checkpoint
from eos_sink.protocol.values import Offsets

__all__ = ["Checkpoint", "Offsets"]
