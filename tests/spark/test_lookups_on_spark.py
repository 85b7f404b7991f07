# SPDX-License-Identifier: Apache-2.0
"""Bulk lookups on Spark compare what one process compares, unit by unit."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from segproof_spark.lookups.comparison import Unit
from segproof_spark.lookups.job import (
    Summary,
    Total,
    lookups_frame,
    lookups_on_spark,
    summary_of,
)
from segproof_spark.lookups.real_files import real_units
from segproof_spark.lookups.structures import STRUCTURES, run_unit
from segproof_spark.result_rows import ResultsLostError, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

K04 = "segproof_harness.canaries.indexes:K04OffsetIndex"


def figures(summary: Summary) -> dict[str, tuple[int, ...]]:
    """Return what does not depend on the time that was taken."""

    def of(total: Total) -> tuple[int, ...]:
        return total.units, total.lookups, total.by_model, total.by_single, total.differing

    return {total.structure: of(total) for total in summary.totals}


def test_same_figures_as_in_one_process(
    spark: "SparkSession", partition: Path, tmp_path: Path
) -> None:
    """Generated and real ones: every unit is done once, and added up; rows are kept as Parquet."""
    units = [Unit(name, 5, 1, 500) for name in STRUCTURES]
    (partition / "00000000000000000060.index").write_bytes(b"\0\0\0\5\0\0\0\0\0\0\0\3\0\0\0\7")
    units += real_units([str(partition)], ["offset-index", "time-index"], 2_500)
    out = tmp_path / "rows of all"
    local = summary_of(run_unit(unit).row() for unit in units)
    found = lookups_on_spark(spark, units, out=str(out))
    assert figures(local) == figures(found)
    assert local.lookups == found.lookups > 8_000
    assert local.notes == found.notes
    assert 1 == found.left_out
    assert all(total.worker_peak_bytes < 512 << 20 for total in found.totals)
    assert len(units) == spark.read.parquet(str(out)).count()


def test_rows_that_are_lost_are_missed(spark: "SparkSession", tmp_path: Path) -> None:
    """A place that is another one on each worker gives back a part only, or nothing."""
    units = [Unit("time-index", 5, index, 500) for index in range(4)]
    for index, kept in enumerate((3, 0)):
        out = str(tmp_path / f"lost {index}")
        rows = lookups_frame(spark, units, 1).filter(f"`index` < {kept}")
        with pytest.raises(ResultsLostError, match=f"not all units .* {kept} of 4"):
            written(spark, rows, out, "units", len(units))


def test_a_planted_defect_is_found_and_its_command_works(spark: "SparkSession") -> None:
    """A red row names a command line that shows the same difference in one process."""
    units = [Unit("offset-index", 0, index, 500, subject=K04) for index in range(4)]
    found = lookups_on_spark(spark, units)
    assert found.differing >= len(found.findings) >= 3
    assert "OFFIDX-11" == found.findings[0]["law"]
    command = shlex.split(found.findings[0]["reproduce"])
    again = subprocess.run(
        [sys.executable, "-m", "segproof_harness.cli", *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 1 == again.returncode, again.stderr
    assert "error OFFIDX-11 generated:offset-index:0:" in again.stdout
