"""The columns that a Kafka sink takes, and their types.

The contract is that of Spark's own sink: KafkaWriter, KafkaWriteTask and Spark's Kafka integration
guide. Names are case-sensitive and other columns are ignored. Spark itself refuses two columns of
one name for a sink in Python. This module loads neither pyarrow nor numpy: a planner needs no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eos_sink.messages import Reason, stop

_TEXT_OR_BYTES = ("string", "binary")
_ALLOWED = {
    "value": _TEXT_OR_BYTES,
    "key": _TEXT_OR_BYTES,
    "topic": ("string",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
# Its name in SparkThrowable.getCondition of Spark's own sink.
_UNFIT_COLUMN = "_LEGACY_ERROR_TEMP_3080"


def check_columns(
    types: Mapping[str, str], topic: str | None, timestamp: str | None = None
) -> None:
    """Check a query's columns before anything is written.

    Args:
        types: Spark's simple type string of each column.
        topic: the option `topic`, or None. If it is set, a column `topic` is ignored.
        timestamp: the option `eos.timestamp.column`, or None.

    Raises:
        ConfigurationError: a column is missing or of a wrong type.
    """
    if "value" not in types:
        import difflib  # a planner does without it where all is well

        similar = difflib.get_close_matches("value", [name.lower() for name in types], 1)
        meant = next((name for name in types if name.lower() in similar), "to_json(struct(*))")
        columns = sorted(types)
        raise stop(Reason.NO_VALUE, columns=columns, meant=meant, condition=_UNFIT_COLUMN)
    if topic is None and "topic" not in types:
        raise stop(Reason.NO_TOPIC, condition=_UNFIT_COLUMN)
    for name, allowed in _ALLOWED.items():
        if name in types and (name != "topic" or topic is None):
            _check_type(name, types[name], allowed)
    if timestamp is not None:
        if timestamp not in types:
            raise stop(Reason.NO_TIMESTAMP, column=timestamp, columns=sorted(types))
        _check_type(timestamp, types[timestamp], ("timestamp",))


def used_columns(names: Iterable[str], topic: str | None, timestamp: str | None) -> list[str]:
    """Those of a frame's columns that the sink reads; arguments as in `check_columns`."""
    # The column of timestamps may have any name, also that of a column that is not read.
    used = {*_ALLOWED} - ({"topic"} if topic is not None else set()) | {timestamp}
    return [name for name in names if name in used]


def _check_type(name: str, given: str, allowed: tuple[str, ...]) -> None:
    if _base_type(given) not in allowed:
        raise stop(
            Reason.COLUMN_TYPE,
            name=name,
            given=given,
            allowed=" or ".join(allowed),
            wanted=allowed[0].upper(),
            condition=_UNFIT_COLUMN,
        )


def _base_type(simple: str) -> str:
    """A collated string, `varchar(n)` or `char(n)` is a string on the wire. Field names inside a
    type are case-insensitive, as in Spark."""
    simple = simple.lower()
    return "string" if simple.startswith(("string", "varchar(", "char(")) else simple
