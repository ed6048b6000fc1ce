"""The Kafka clients behind small protocols; nothing outside imports a client library."""
