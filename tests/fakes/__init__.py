"""An in-memory Kafka behind `eos_sink.kafka.interfaces`; `tests/contract` holds it to it."""
