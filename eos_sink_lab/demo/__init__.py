"""`eos-sink demo`: real flights through a real Kafka while the driver is killed."""
