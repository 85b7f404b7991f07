# SPDX-License-Identifier: Apache-2.0
"""What the files beside the logs of a partition say of them: an end that is gone, and an index.

Laws: DISK-36, DISK-38, DISK-64.
"""

from segproof.files import Files
from segproof.reading.file_names import SNAPSHOT_SUFFIX, read_file_name
from segproof.verifying.directory_checks import Partition
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.small_files import EPOCHS, HIGH_WATERMARK, RECOVERY, START, read_epochs


def index_of(log: str) -> str:
    """Return the path of the offset index of a log, which may wait as `.swap` for its place."""
    if log.endswith(".swap"):
        return f"{log.removesuffix('.log.swap')}.index.swap"
    return f"{log.removesuffix('.log')}.index"


def end_that_is_gone(
    partition: Partition, next_offset: int, files: Files
) -> tuple[str, int] | None:
    """Return the last log and its length, if a snapshot or a checkpoint shows that it was longer.

    `next_offset` is the offset after what was kept of the partition.
    """
    logs = [one for one in partition.segments if ".log" in one.suffixes]
    told = dict(partition.offsets)
    names = map(read_file_name, partition.others)
    known = [one.base_offset for one in names if one.suffix == SNAPSHOT_SUFFIX]
    known += [told.get(RECOVERY, 0), told.get(HIGH_WATERMARK, 0)]
    if EPOCHS in partition.others:
        entries = read_epochs(Reporter(Wanted()).at(partition.path(EPOCHS)), files)
        known += [one.start_offset for one in (entries or ())[-1:]]
    if not logs or max(known) <= max(next_offset, told.get(START, 0)):
        return None
    path = logs[-1].path(".log")
    status = files.status(path)
    return path, 0 if status is None else status.size_bytes
