"""What comes with the sink and is no part of it: a Kafka for tests, `verify`, `migrate`, `demo`.

It uses the sink; the sink does not know it, except for `eos_sink.testing`.
"""
