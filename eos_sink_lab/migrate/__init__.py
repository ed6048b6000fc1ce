"""`eos-sink migrate`: assesses the options of a query that uses Spark's Kafka sink."""
