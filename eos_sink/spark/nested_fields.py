"""Columns that Spark cannot hand to a data source in Python."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eos_sink.messages import Reason, stop


def check_nested_fields(schema: StructType) -> None:
    """Check that no struct has two fields of one name, in no column: Spark converts all of them to
    Arrow, those too that the sink does not read (DUPLICATED_FIELD_NAME_IN_ARROW_STRUCT). Spark's
    own sink takes them.

    Raises:
        ConfigurationError: names the column.
    """
    for field in schema.fields:
        twin = _find_twin(field.dataType)
        if twin is not None:
            raise stop(Reason.TWIN_FIELDS, column=field.name, twin=twin)


def _find_twin(kind: DataType) -> str | None:
    inner: list[DataType] = []
    if isinstance(kind, StructType):
        twins = (name for number, name in enumerate(kind.names) if name in kind.names[:number])
        twin = next(twins, None)
        if twin is not None:
            return twin
        inner = [field.dataType for field in kind.fields]
    elif isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    return next((twin for each in inner if (twin := _find_twin(each)) is not None), None)
