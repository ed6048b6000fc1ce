"""The rows and batches that a benchmark writes."""

from __future__ import annotations

from dataclasses import dataclass

_FILL = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Shape:
    """Rows of one form, in batches of one size.

    Attributes:
        name: in tables.
        rows: in a batch.
        batches: how many a query runs in its turn.
        warm_up: how many of them, the first ones, are not measured.
        value_bytes: length of a value: a number, a hash of it, and the alphabet over and over.
        varies: in Spark, lengths are between half of it and one and a half.
        key_bytes: length of a key, one of 100,000 different ones; 0 for none.
        headers: how many, of 20 bytes each.
        partitions: of the topic.
        compression: `compression.type` of the producers.
        linger_ms, batch_bytes: their `linger.ms` and `batch.size`; None: each client's default.
        arrow_rows: Spark hands to Python at most so many at once.
    """

    name: str
    rows: int
    batches: int
    warm_up: int
    value_bytes: int = 100
    varies: bool = False
    key_bytes: int = 0
    headers: int = 0
    partitions: int = 6
    compression: str = "none"
    linger_ms: int | None = 5
    batch_bytes: int | None = 256 * 1024
    arrow_rows: int = 10_000

    def __post_init__(self) -> None:
        if not 0 < self.warm_up < self.batches:
            raise ValueError(f"of {self.batches} batches {self.warm_up} cannot be the warm-up")

    @property
    def settings(self) -> dict[str, str]:
        """Of each peer's producer."""
        tuned = {"linger.ms": self.linger_ms, "batch.size": self.batch_bytes}
        given = {name: str(number) for name, number in tuned.items() if number is not None}
        return {"acks": "all", "compression.type": self.compression, **given}

    @property
    def options(self) -> dict[str, str]:
        """Options of the sink, without the topic."""
        return {f"kafka.{name}": value for name, value in self.settings.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """SQL expressions over a number in the column `value`."""
        text = "concat(CAST(value AS STRING), '-', hex(xxhash64(value)), '-')"
        length = str(self.value_bytes)
        if self.varies:
            length = f"CAST({length} div 2 + pmod(xxhash64(value), {length}) AS INT)"
        columns = [f"rpad({text}, {length}, '{_FILL}') AS value"]
        if self.key_bytes:
            key = "CAST(value % 100000 AS STRING)"
            columns.append(f"lpad({key}, {self.key_bytes}, '0') AS key")
        if self.headers:
            structs = (
                f"named_struct('key', 'header-{n:03}', 'value', CAST('value-{n:04}' AS BINARY))"
                for n in range(self.headers)
            )
            columns.append(f"array({', '.join(structs)}) AS headers")
        return tuple(columns)

    def value(self, number: int) -> bytes:
        """A value of the same form, for peers without Spark: equally long and repetitive."""
        text = f"{number}-{number * 0x9E3779B97F4A7C15 % 2**64:016X}-"
        filled = text + _FILL * (self.value_bytes // len(_FILL) + 1)
        return filled[: self.value_bytes].encode()
