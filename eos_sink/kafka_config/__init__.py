"""Kafka settings, permissions and broker versions: tables and rules, without a client.

Users write `kafka.` and a Java name, as for Spark's own sink; librdkafka's own names work too.
Pure: no client library is imported and no file is read.

    find_setting("linger.ms")               its row in the table, or None
    check_setting("acks", "1").handling     what the sink does with this value
    translate(settings)                     all settings of a query together
    SETTINGS                                all rows, by name
"""
