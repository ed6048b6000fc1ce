"""An in-memory Kafka behind `eos_sink.ports`; `tests/contract` holds it to what Kafka does."""
