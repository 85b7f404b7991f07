# SPDX-License-Identifier: Apache-2.0
"""What a crash left on its way into or out of a partition, and what Kafka's next start makes of it.

The loader first removes `.deleted` and `.cleaned` files. A `.swap` file at or above the lowest
`.cleaned` offset belongs to a change that was not finished, and is removed too; every other one
takes the place of all segments that begin within its own offsets.

Upstream: Kafka 4.3.1: LogLoader.removeTempFilesAndCollectSwapFiles, LocalLog.replaceSegments.
Laws: LOAD-1, DISK-41, DISK-42, DISK-59; those of swapped_logs and replaced_logs.
"""

import posixpath
from collections.abc import Mapping
from contextlib import suppress

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import Hint, reads, writes
from segproof.inventory.segment_listing import kinds_of
from segproof.reading.file_names import SEGMENT_SUFFIXES, FileName, NameKind
from segproof.reading.live_writer import STEP_PAUSES_SECONDS, wait_for_a_step
from segproof.reading.waiting_logs import (
    OnlyCopy,
    bases_of,
    damage_in,
    is_kept,
    may_hide_records,
    only_copy,
    swap_logs,
)
from segproof.verifying.replaced_logs import COPY_AWAY, KEEP_COPY, ReplacedLogs
from segproof.verifying.swapped_logs import copies_of_swaps, report_damage, report_only_copies
from segproof.wording.partition_words import REST
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

declare("partition-log", Severity.NOTE,
    reads("nothing: see what the message says of the next start"), "DISK-41")  # fmt: skip
declare("partition-log", Severity.WARNING, KEEP_COPY, "DISK-42", "DISK-59")
SEE_FOREIGN = reads("see what DISK-60 says of this file before a broker starts here")
SEE_COPIES = writes("copy this file away before a broker starts here, as DISK-59 says")


def report_pending(
    directory: str,
    kinds: Mapping[str, FileName],
    files: Files,
    reporter: Reporter,
    *,
    is_alone: bool = False,
) -> None:
    """Report the pending and temporary files of a partition.

    `is_alone` if `kinds` has one file only, whatever lies beside it.
    """
    pending = [name for name, known in kinds.items() if known.kind is NameKind.PENDING]
    logs = bases_of(kinds)
    cleaned = [kinds[name].base_offset for name in pending if name.endswith(".cleaned")]
    damaged, only_copies = _report_swaps(directory, kinds, logs, files, reporter)
    replacing = ReplacedLogs(directory, kinds, damaged, files)
    found = {} if is_alone else _unreplaced(replacing, directory, damaged, files)
    only_copies |= replacing.report(found, reporter)
    saved_by_steps = _report_removed(directory, kinds, damaged, found, replacing, reporter)
    only_copies |= saved_by_steps
    for name in pending:
        path = posixpath.join(directory, name)
        known, hint = kinds[name], _hint_of(name, found)
        is_deleted = name.endswith((".log.deleted", ".log.cleaned")) and not is_alone
        if name.endswith(".deleted"):
            words = "it was removed from the log: Kafka deletes it, now or at its next start"
            cost = replacing.words_of_removed(known.base_offset)
            if cost and name.endswith(".log.deleted") and not is_alone and path not in only_copies:
                words += cost
                if (told := replacing.hint_of_removed(known.base_offset)) is not None:
                    hint = told
                    only_copies.add(path)
        elif name.endswith(".cleaned"):
            words = (
                "the cleaner, or the splitting of a segment, was writing it: Kafka deletes it at"
                " its next start, and the segments that it was made from stay"
            )
            if name.endswith(".log.cleaned") and not is_alone:
                only = only_copy(path, replacing.log_paths, files, ranges=replacing.ranges)
                if only is not None:
                    _report_only_copy(path, only, directory, reporter)
                    only_copies.add(path)
                    words = (
                        "it has the name of a log that the cleaner was writing: Kafka deletes it at"
                        " its next start, and the segments that it was made from are not here, or"
                        " are damaged"
                    )
        elif cleaned and known.base_offset >= min(cleaned):
            words = (
                f"a change that was not finished, as the .cleaned file of offset {min(cleaned)}"
                " says: Kafka deletes it at its next start"
            )
            if name.endswith(".log.swap"):
                only_copies |= _lost_swap(path, known.base_offset, logs, replacing, files, reporter)
                is_deleted = not is_alone
        elif name.endswith(".log.swap"):
            words = _swap(replacing, is_alone=is_alone)
        elif known.suffix in SEGMENT_SUFFIXES:
            words = "Kafka puts it in its place at its next start, with the log of its name"
        else:
            words = f"at its next start Kafka renames it to {name.removesuffix('.swap')}"
        if is_deleted and path not in only_copies:
            doubt = _doubt(path, known.base_offset, replacing, files)
            if doubt:
                words, hint = f"{words}; {doubt}", KEEP_COPY
                only_copies.add(path)
        hint = SEE_COPIES if path in saved_by_steps else hint
        reporter.at(path).add("LOAD-1", words, hint=hint if path in only_copies else None)
    _report_temporary(directory, kinds, reporter)


def _hint_of(name: str, unreplaced: Mapping[str, str]) -> Hint:
    """Return what to do about a pending file that may be needed."""
    if name.endswith(".swap"):
        return SEE_FOREIGN if name in unreplaced else COPY_AWAY
    return KEEP_COPY


def _report_temporary(directory: str, kinds: Mapping[str, FileName], reporter: Reporter) -> None:
    """Report the files that were being written."""
    for name, known in kinds.items():
        if name.endswith(".tmp") and known.kind is NameKind.KNOWN:
            report_tmp(posixpath.join(directory, name), directory, reporter)


def report_tmp(path: str, directory: str, reporter: Reporter) -> None:
    """Report a file of Kafka's own that was being written."""
    words = "it was being written: Kafka does not read it, and the next write replaces it"
    hint = reads("nothing: Kafka does not read it")
    reporter.at(path, shown_by=directory).add("DISK-41", words, hint=hint)


def _doubt(path: str, base: int, replacing: ReplacedLogs, files: Files) -> str:
    """Return in words what only a damaged log that Kafka deletes may hold; else nothing.

    Its sound batches were compared, but for a removed log that follows the last one.
    """
    is_removed = path.endswith(".deleted")
    logs = replacing.log_paths
    place = [one for one in logs if one[0] <= base][-1:]
    if not logs or (is_removed and not place) or not may_hide_records(path, files):
        return ""
    if is_removed and place == logs[-1:] and place[0][0] != base:
        only = only_copy(path, logs, files, ranges=replacing.ranges)
        return "" if only is None else f"it is damaged, and {REST} offset {only.missing}"
    with suppress(OSError):
        if all(damage_in(one, files) is None for _, one in place):
            return ""
    return (
        "it is damaged, and so is the log of its offsets: what its damaged bytes hold was not"
        " compared with the logs"
    )


def _unreplaced(
    replacing: ReplacedLogs, directory: str, damaged: set[int], files: Files
) -> dict[str, str]:
    """Return the logs that nothing replaces, looked for again while a broker may be at a step.

    One that cuts or replaces logs leaves a log so for a moment.
    """
    found = replacing.unreplaced()
    for pause in STEP_PAUSES_SECONDS:
        if not found or not wait_for_a_step([directory, *replacing.paths_of_end()], files, pause):
            break
        try:
            kinds = kinds_of(files.list_directory(directory))
        except OSError:
            break
        again = ReplacedLogs(directory, kinds, damaged, files).unreplaced()
        found = {name: words for name, words in found.items() if name in again}
    return found


def _report_swaps(
    directory: str,
    kinds: Mapping[str, FileName],
    logs: list[int],
    files: Files,
    reporter: Reporter,
) -> tuple[set[int], set[str]]:
    """Report damaged `.swap` logs; return their base offsets, and their paths."""
    swaps = swap_logs(kinds)
    damaged = {
        base
        for base, name in swaps.items()
        if report_damage(reporter.at(posixpath.join(directory, name)), base, logs, files)
    }
    return damaged, {posixpath.join(directory, swaps[base]) for base in damaged}


def _report_removed(
    directory: str,
    kinds: Mapping[str, FileName],
    damaged: set[int],
    unreplaced: Mapping[str, str],
    replacing: ReplacedLogs,
    reporter: Reporter,
) -> set[str]:
    """Report removed logs that may be the only copy of what damage took; return their paths."""
    deleted = {
        known.base_offset: posixpath.join(directory, name)
        for name, known in kinds.items()
        if known.kind is NameKind.PENDING and name.endswith(".log.deleted")
    }
    of_swaps = copies_of_swaps(deleted, bases_of(kinds), damaged, swap_logs(kinds))
    of_logs = replacing.of_damaged_logs(unreplaced)
    steps = replacing.steps_of_copies({*of_swaps, *of_logs})
    report_only_copies(of_swaps, of_logs, steps, reporter)
    return {*of_swaps, *of_logs}


def _lost_swap(
    path: str, base: int, logs: list[int], replacing: ReplacedLogs, files: Files, reporter: Reporter
) -> set[str]:
    """Report a `.swap` log that a start deletes, if it may be the only copy; return its path."""
    directory = posixpath.dirname(path)
    only = only_copy(path, replacing.log_paths, files, ranges=replacing.ranges)
    if not is_kept(base, logs, directory, files):
        reporter.at(path, shown_by=directory).add(
            "DISK-42",
            f"Kafka deletes this file at its next start, and no log holds offset {base}:"
            " its records are in no other place",
            expected=f"a log with offset {base}",
        )
    elif only is not None:
        _report_only_copy(path, only, directory, reporter)
    else:
        return set()
    return {path}


def _report_only_copy(path: str, only: OnlyCopy, directory: str, reporter: Reporter) -> None:
    reporter.at(path, shown_by=directory).add(
        "DISK-42",
        f"Kafka deletes this file at its next start. It has batches of the offsets {only.first} to"
        f" {only.last}, and the logs here have no sound batch with offset {only.missing}: this may"
        " be the only copy of its records",
        expected=f"a sound batch with offset {only.missing} in a log",
    )


def _swap(replacing: ReplacedLogs, *, is_alone: bool) -> str:
    """Return what becomes of a swap log. If it `is_alone`, no other file was listed."""
    (first, end), count = replacing.range, len(replacing.replaced())
    here = f"{count} segments" if count != 1 else "one segment"
    whom = "" if is_alone else f", here {here}"
    what = "it" if replacing.is_alone else "all .swap logs"
    return (
        f"at its next start Kafka puts {what} in the place of the segments with base offsets from"
        f" {first} to {end - 1}{whom}"
    )


def words_of_directory(state: str) -> str:
    """Return what a partition's directory of that state is, in words."""
    return {
        "delete": "the broker is about to remove this partition: it is deleted for good, now or"
        " behind the next start",
        "future": "a copy of a partition that is being moved here from another log directory: the"
        " broker goes on with it, and gives it its plain name when it has caught up",
        "stray": "the cluster has not assigned this partition to the broker, which has set it aside"
        " and never deletes it by itself",
    }[state]
