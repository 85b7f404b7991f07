# SPDX-License-Identifier: Apache-2.0
"""Read back the results of a replay from Parquet, with pyarrow only, without Spark or Java."""

import posixpath
from typing import Any

from segproof_spark.replay.summary import FIGURES, FINDINGS_MAX, Summary

ROWS_A_BATCH = 10_000
INSTALL = "`pip install 'segproof[arrow]'`"


class NoResultsError(Exception):
    """The place has no results of a replay that can be read; the text gives the reason."""


def report(place: str, findings_max: int = FINDINGS_MAX) -> Summary:
    """Return the summary of the results in a directory, or below a URL.

    Raises: NoResultsError.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise NoResultsError(f"{place}: Parquet needs pyarrow: {INSTALL}") from None

    total = Summary()
    columns = ["structure", "profile", *FIGURES[1:], "by_operation", "sometimes"]
    try:
        for batch in _dataset(place).to_batches(columns=columns, batch_size=ROWS_A_BATCH):
            total.add_batch(batch)
            lists = batch.column("findings").to_pylist() if total.findings_cut else ()
            total.add_findings((one for each in lists for one in each), findings_max)
    except (OSError, pa.ArrowException) as error:
        raise NoResultsError(f"{place}: {str(error).splitlines()[0]}") from None
    return total


def is_finished(place: str) -> bool:
    """Return whether the job has marked its results as complete.

    Without the mark, tasks may be missing. Raises: NoResultsError.
    """
    from pyarrow import ArrowException, fs

    try:
        filesystem, path = _opened(place)
        marker = filesystem.get_file_info(posixpath.join(path, "_SUCCESS"))
    except (OSError, ArrowException) as error:
        raise NoResultsError(f"{place}: {str(error).splitlines()[0]}") from None
    return bool(marker.type == fs.FileType.File)


def _opened(place: str) -> tuple[Any, str]:
    from pyarrow import fs

    return fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)


def _is_hidden(path: str, place: str) -> bool:
    """Return whether Spark skips this path below a place, such as `_temporary` and `.part.crc`."""
    parts = posixpath.relpath(path, place).split("/")
    return any(part.startswith(("_", ".")) for part in parts)


def _dataset(place: str) -> Any:
    from pyarrow import dataset, fs

    filesystem, path = _opened(place)
    if filesystem.get_file_info(path).type is not fs.FileType.Directory:
        raise NoResultsError(f"{place}: no such directory; give what `spark replay --out` wrote")
    files = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    visible = [one.path for one in files if not _is_hidden(one.path, path)]
    found = [each for each in visible if each.endswith(".parquet")]
    if not found:
        raise NoResultsError(f"{place}: holds no results: no file ends in .parquet")
    read = dataset.dataset(found, filesystem=filesystem, format="parquet")
    missing = {"structure", "by_operation", "sometimes", *FIGURES[1:]} - set(read.schema.names)
    if missing:
        raise NoResultsError(f"{place}: not of `spark replay`: no column {min(missing)!r}")
    return read
