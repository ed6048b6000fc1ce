"""From the settings of Java's Kafka producer to librdkafka's: one table, and what it says of each.

Users write `kafka.` and a Java name, as for Spark's own sink; librdkafka's own names are taken too.
Pure: no client library is imported and no file is read.

    setting("linger.ms")            its row, or None
    judge("acks", "1").fate         what becomes of it with this value
    translate(settings)             all of a query's settings at once
    SETTINGS                        all rows, by name
"""

from __future__ import annotations

from eos_sink.kafka_config.check_setting import SETTINGS, is_known, is_secret, judge, setting
from eos_sink.kafka_config.setting import Fate, Judgement, Setting
from eos_sink.kafka_config.translate import Store, Translation, translate, within_transaction

__all__ = [
    "SETTINGS",
    "Fate",
    "Judgement",
    "Setting",
    "Store",
    "Translation",
    "is_known",
    "is_secret",
    "judge",
    "setting",
    "translate",
    "within_transaction",
]
