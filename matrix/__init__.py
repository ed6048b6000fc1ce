"""The sink on every Spark, Kafka and Python that it is for, as it is installed: docs/matrix.md."""
