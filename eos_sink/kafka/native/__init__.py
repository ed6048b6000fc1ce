"""Rows from Arrow's buffers to librdkafka by its public C API, without a Python object a row."""
