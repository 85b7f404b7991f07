# SPDX-License-Identifier: Apache-2.0
"""Files that say that a log ends exactly where it does, against one that says that it went on.

A clean stop leaves both checkpoints at the end of the log: what was flushed, and what is
replicated. A snapshot or an epoch beyond that end may be a stray then. It proves no loss: a broker
writes the checkpoints every few seconds, so they may be older than the file.

Upstream: Kafka 4.3.1: LogManager.checkpointLogRecoveryOffsets,
ReplicaManager.checkpointHighWatermarks.
Laws: DISK-36, DISK-38, DISK-64.
"""

from collections.abc import Mapping

from segproof.reading.cleaner_traces import UP_TO
from segproof.verifying.small_files import HIGH_WATERMARK, RECOVERY

AGREED = f"{RECOVERY} and {HIGH_WATERMARK} both say that the log ends there, so no loss is counted"


def is_end_agreed(offsets: Mapping[str, int], end_offset: int) -> bool:
    """Return whether both checkpoints say that a log ends at this offset, exclusive.

    `offsets` are those of the partition in the checkpoints of its data directory, by file name. The
    log must end with a sound batch, and no index may lead beyond it.
    """
    return end_offset > 0 and {end_offset} == {offsets.get(RECOVERY), offsets.get(HIGH_WATERMARK)}


def told_offset(offset: int, *, is_agreed: bool) -> int | str:
    """Return the `actual` of a finding about a file that names an offset beyond the end."""
    return f"{UP_TO}{offset}" if is_agreed else offset
