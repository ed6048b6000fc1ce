"""Tests the installed sink with each supported Spark, Kafka and Python: docs/compatibility.md."""
