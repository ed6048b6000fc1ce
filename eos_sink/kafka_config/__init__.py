"""Kafka settings, permissions and broker versions: tables and rules, without a client.

Users write `kafka.` and a Java name, as for Spark's own sink; librdkafka's own names work too.
Pure: no client library is imported and no file is read.
"""
