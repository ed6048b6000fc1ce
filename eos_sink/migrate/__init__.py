"""Reads the options of a query that writes with Spark's Kafka sink, and assesses each of them."""
