# SPDX-License-Identifier: Apache-2.0
"""Index entries that a truncation left behind the broker's last one, told from damage.

A broker counts its entries in memory. When it truncates, it lowers the count and leaves the bytes;
the file of the last segment keeps its full size. Behind the count there may so be entries of
batches that are no longer in the log, until new ones are written over them. Closing trims them and
recovery makes the index new, so only an index with a preallocated tail, of a segment that is not
closed, is looked at here: entries that are broken up to the last one become one note for each law,
where all before them are sound and the log behind those is no longer than a broker leaves without
an entry. A truncation cuts the log: entries for what is zeros now tell of batches that were lost.

Upstream: Kafka since 0.11.0: AbstractIndex.truncateToEntries, resize, trimToValidSize.
Laws: ABSIDX-20; SEG-7, OFFIDX-2, DISK-8; DISK-9, TIMEIDX-7.
"""

import numpy as np

from segproof.findings import Severity
from segproof.verifying.index_checks import OFFSET_FORM, IndexStream
from segproof.verifying.reporting import Reporter
from segproof.verifying.segments import Segment

__all__ = ["soften_leftovers"]

LAWS = {".index": ("SEG-7", "OFFIDX-2", "DISK-8"), ".timeindex": ("DISK-9", "TIMEIDX-7")}
"""Laws that leftover entries break; the first of each speaks of one entry and the log."""
WITHOUT_ENTRY_BYTES = 2 << 20
"""What a follower may append at once, and so without an entry inside it, twice."""
GAPS = 8
"""Distances between entries that a log may go on without one more."""


def soften_leftovers(
    stream: IndexStream, log_end: int, zeros_end: int, segment: Segment, reporter: Reporter
) -> None:
    """Put a note in the place of each law's findings, if a truncation explains them all.

    The last batch ends at `log_end`, and zeros behind it at `zeros_end`: what leads there is a
    warning.
    """
    laws = LAWS[stream.form.suffix]
    broken = {law: reporter.broken(law, stream.path) for law in laws}
    is_kept_by_a_broker = not segment.is_closed and stream.count < stream.slots
    if not is_kept_by_a_broker or stream.is_damaged:
        return
    if not any(each.places for each in broken.values()):
        return
    entry_size = stream.form.entry_size
    first = min(each.first for each in broken.values() if each.places) // entry_size
    beside = broken[laws[0]]
    if beside.places * 2 < stream.count - beside.first // entry_size and beside.places:
        return  # sound entries follow: they were not left behind
    if stream.form is OFFSET_FORM and _goes_on(stream, first, log_end):
        return
    are_lost = False
    if stream.form is OFFSET_FORM:
        at = stream.read(first, 1)["position"].astype(np.int64)
        are_lost = bool(((at >= log_end) & (at < zeros_end)).any())
    why = "they were left by a truncation, or are damaged"
    hint = (
        "nothing, while or before a broker runs on this directory: it writes over these entries or"
        " makes the index new; elsewhere make it new with `segproof rebuild`"
    )
    if are_lost:
        why = f"there are zeros from byte {log_end} on, and batches when these were written"
        hint = (
            "copy the segment from another replica before a broker starts here: it takes the log"
            " to end before the zeros"
        )
    for law, each in broken.items():
        if not each.places:
            continue
        reporter.retract(law, stream.path)
        number = each.first // entry_size
        reporter.add(
            law,
            stream.path,
            f"entries from number {number} on, of {stream.count}, do not fit the log, up to the"
            f" last one: {why}",
            position=each.first,
            actual=each.places,
            severity=Severity.WARNING if are_lost else Severity.NOTE,
            hint=hint,
        )


def _goes_on(stream: IndexStream, first: int, log_end: int) -> bool:
    """Return whether the log is much longer behind entry `first` - 1 than without an entry."""
    if not first:
        return log_end > WITHOUT_ENTRY_BYTES
    last, widest = 0, 0
    for start, block in stream.blocks():
        positions = block["position"][: max(0, first - start)].astype(np.int64)
        if not len(positions):
            break
        widest = max(widest, int(np.diff(positions, prepend=last).max()))
        last = int(positions[-1])
    return log_end - last > max(WITHOUT_ENTRY_BYTES, GAPS * widest)
