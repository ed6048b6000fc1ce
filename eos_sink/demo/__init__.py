"""Real flights through a real Kafka while the driver is killed: what `eos-sink demo` runs."""
