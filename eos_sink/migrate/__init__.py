"""`eos-sink migrate`: reads the options of a query that uses Spark's Kafka sink, and assesses each."""
