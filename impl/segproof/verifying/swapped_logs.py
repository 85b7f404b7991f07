# SPDX-License-Identifier: Apache-2.0
"""Logs that wait as `.swap` for their place: they hold data, which Kafka's next start uses.

The cleaner, or the splitting of a segment, renames a finished log to `.swap`, then the old logs to
`.deleted`, the first one first, then the `.swap` log to its own name. The loader completes this: it
deletes every other file of the offsets that the `.swap` logs hold, and renames them. So as long as
the first old log is there, the old logs hold all of it. Afterwards only the `.swap` logs do. What
that deletion takes away without a replacement is found by `replaced_logs`.

Upstream: Kafka 4.3.1: LocalLog.replaceSegments, LogLoader.load.
Laws: LOAD-2, DISK-58, DISK-59.
Which `.swap` logs are read as segments: see `segproof.reading.waiting_logs`.
"""

import posixpath
from collections.abc import Iterable, Mapping

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import Hint, writes
from segproof.reading.waiting_logs import OnlyCopy, damage_in, is_kept
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import declare

declare("partition-log", Severity.ERROR,
    writes("copy the whole directory away before a broker starts here, and save it with `segproof"
    " salvage DIR --out DIR2`: the old logs are sound as far as verify reports nothing of them"),
    "DISK-58")  # fmt: skip


def report_damage(report: PathReporter, base: int, logs: list[int], files: Files) -> bool:
    """Report a `.swap` log that is damaged while the old logs are there; return if it is damaged.

    Where the old logs are gone it is checked as a segment, which tells more.
    """
    try:
        position = damage_in(report.path, files)
    except OSError as error:
        report.failed(error)
        return True
    if position is None:
        return False
    if is_kept(base, logs, posixpath.dirname(report.path), files):
        report.add(
            "DISK-58",
            f"this log is damaged at byte {position}, and at its next start Kafka puts it in the"
            " place of the old logs, which it deletes",
            position=position,
            expected="a sound log",
        )
    return True


def copies_of_swaps(
    deleted: Mapping[int, str], logs: list[int], damaged: set[int], swaps: Iterable[int]
) -> dict[str, int]:
    """Return the removed logs whose offsets only a damaged `.swap` log holds.

    `deleted` are the paths of removed logs by base offset. The answer has for each path the base
    offset of its `.swap` log.
    """
    found = {}
    for base, path in deleted.items():
        below = max((one for one in (*logs, *swaps) if one <= base), default=-1)
        if below in damaged and below not in logs:
            found[path] = below
    return found


def report_only_copies(
    of_swaps: Mapping[str, int],
    of_logs: Mapping[str, OnlyCopy],
    hint: Hint | None,
    reporter: Reporter,
) -> None:
    """Report removed logs that may be the only copy of what damage took.

    `of_swaps` are those of damaged `.swap` logs, with the base offset of each; `of_logs` those of
    other damaged logs. `hint` saves all of them.
    """
    for path, swap in of_swaps.items():
        reporter.at(path, shown_by=posixpath.dirname(path)).add(
            "DISK-59",
            "Kafka deletes this log at its next start, and the .swap log of offset"
            f" {swap}, which took its place, is damaged: this may be the only copy of what"
            " is lost there",
            hint=hint,
        )
    for path, only in of_logs.items():
        reporter.at(path, shown_by=posixpath.dirname(path)).add(
            "DISK-59",
            "Kafka deletes this log at its next start, and the log that took its place is damaged:"
            f" no sound batch here has offset {only.missing}, which this log has. It may be the"
            " only copy of what is lost there",
            expected=f"a sound batch with offset {only.missing} in a log",
            hint=hint,
        )
