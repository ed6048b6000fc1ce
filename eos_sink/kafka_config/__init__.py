"""Kafka settings, permissions and broker versions: tables and rules, without a client.

Users write `kafka.` and a Java name, as for Spark's own sink; librdkafka's own names work too.
Pure: no client library is imported and no file is read.

    find_setting("linger.ms")               its row in the table, or None
    check_setting("acks", "1").handling     what the sink does with this value
    translate(settings)                     all settings of a query together
    SETTINGS                                all rows, by name
"""

from __future__ import annotations

from eos_sink.kafka_config.check_setting import (
    CheckedSetting,
    check_setting,
    find_setting,
    is_known,
    is_secret,
)
from eos_sink.kafka_config.java_settings import SETTINGS, Handling, Setting
from eos_sink.kafka_config.translate import Store, Translation, cap_timeouts, translate

__all__ = [
    "SETTINGS",
    "CheckedSetting",
    "Handling",
    "Setting",
    "Store",
    "Translation",
    "cap_timeouts",
    "check_setting",
    "find_setting",
    "is_known",
    "is_secret",
    "translate",
]
