# SPDX-License-Identifier: Apache-2.0
"""The laws of the index service: which files it lists, begins and deletes.

The laws of building and queries are in `index_building`.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.register import Transition, has, law, retired
from segproof_model.laws.rocketmq.broker.store_checkpoint import stored
from segproof_model.laws.rocketmq.format.index_entries import header_of, is_long, size_of
from segproof_model.rocketmq.broker import index_service_deviations as ours
from segproof_model.rocketmq.broker import index_service_releases as older
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.format.index_file import IndexFile

CLASS = "RocketMQ IndexService, 4.0.0 to 5.5.1"
BEGINS = "get_and_create_last_index_file retry_get_and_create_index_file"
CREATES = f"{BEGINS} build_index"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- reading -------------------------------------------------------------------------------------


def folder_of(service: Any) -> str:
    """Return the path of the folder of index files, with a final slash."""
    return f"{service.store_path}/index/" if service.store_path else "index/"


def names_of(service: Any) -> list[str]:
    """Return the names of the listed files."""
    return [file.file_name.removeprefix(folder_of(service)) for file in service.index_files]


def images_in(service: Any) -> dict[str, bytes]:
    """Return what lies in the folder, by name; the name of a folder ends in a slash."""
    start = folder_of(service)
    inside = [one for one in service.files.images.items() if one[0].startswith(start)]
    return {"".join(path[len(start) :].partition("/")[:2]): data for path, data in inside}


def numbered(service: Any) -> list[str]:
    """Return the names in the folder that are numbers, as Java sorts them: by UTF-16 units."""
    return in_order(name for name in images_in(service) if is_long(name.rstrip("/")))


def in_order(names: Iterable[str]) -> list[str]:
    """Return names as Java sorts them: by UTF-16 units."""
    return sorted(names, key=lambda name: name.rstrip("/").encode("utf-16-be", "surrogatepass"))


def begun(step: Transition) -> list[Any]:
    """Return the files that the operation added to the list."""
    return list(step.after.index_files[len(step.before.index_files) :])


def is_full(file: Any) -> bool:
    """Return whether a file has no room."""
    return bool(file.index_count >= file.index_num)


def needs_file(service: Any) -> bool:
    """Return whether the list has no file with room at its end."""
    return not service.index_files or is_full(service.index_files[-1])


def _listed_by_load(step: Transition) -> list[str]:
    """Return the names that a load added to those listed before."""
    replaces = has(step.before, ours.LoadReplaces)
    return names_of(step.after)[0 if replaces else len(step.before.index_files) :]


# --- loading -------------------------------------------------------------------------------------


@law("RMQIDX-11", IndexFile, "RocketMQ IndexFile constructor, 4.0.0 to 5.5.1", on="open")
def opened_file_looks_empty(step: Transition) -> bool:
    """An existing file that is opened but not loaded has slot count 0 and index count 1.

    segproof loads the header of an existing file.
    """
    if not step.succeeded or step.arguments["file_name"] not in step.before:
        return True
    slot_count, index_count = header_of(step.after.image)[4:]
    loads = has(step.after, ours.OpeningReadsHeader)
    expected = (slot_count, max(index_count, 1)) if loads else (0, 1)
    return bool(step.after.header[4:] == expected)


@law("RMQSVC-1", IndexService, CLASS, on="load")
def files_are_listed_in_order(step: Transition) -> bool:
    """load takes the directory entries in lexicographic order of the whole path: "10" before "100"
    before "9"."""
    added = _listed_by_load(step)
    return not step.succeeded or added == in_order(set(added))


@law("RMQSVC-2", IndexService, CLASS, on="load")
def any_numbered_file_is_listed(step: Transition) -> bool:
    """load skips a non-numeric name without deleting it (3.2.6 ends there), accepts a numeric file
    of any size (growing a short one), and returns false at a numeric directory, keeping the files
    loaded so far.

    segproof refuses a file of another size, and grows none but one of no bytes.
    """
    names, old, new = numbered(step.before), images_in(step.before), images_in(step.after)
    if any(new.get(name) != data for name, data in old.items() if name not in names):
        return False
    folder = next((name for name in names if name.endswith("/")), None)
    reached = names if folder is None else names[: names.index(folder)]
    kept = [name for name in reached if name in new]
    is_told = step.outcome is (folder is None) and _listed_by_load(step) == kept
    return not step.succeeded or is_told


retired(
    "RMQSVC-3",
    IndexService,
    "load of a missing directory, or of a path that is a file, returns true and lists nothing.",
    IndexService.load,
)


@law("RMQSVC-4", IndexService, CLASS, on="load")
def uncovered_files_are_deleted(step: Transition) -> bool:
    """After an abnormal exit load deletes exactly the files whose end timestamp is greater than the
    checkpoint's index timestamp; equality keeps the file.

    segproof keeps, by their end offsets, the files up to the first full one whose end timestamp
    equals that of the checkpoint, and deletes those without entries. If no file ends there, it
    keeps files as upstream does.
    """
    if step.outcome is not True:
        return True
    before, covered = step.before, step.before.store_checkpoint.index_msg_timestamp
    old, new = images_in(before), images_in(step.after)
    unlisted = [name for name in numbered(before) if name not in names_of(before)]
    headers = {name: header_of(old[name]) for name in unlisted}  # what is listed is flushed
    kept = {name for name in unlisted if headers[name].end_timestamp <= covered}
    if has(before, ours.UnflushedFileIsDeleted):
        listed = zip(names_of(before), before.index_files, strict=True)
        headers |= {name: file.header for name, file in listed}
        in_row = [name for name in in_order(headers) if headers[name].index_count > 1]
        in_row.sort(key=lambda name: headers[name].end_phy_offset)
        full = [name for name in in_row if headers[name].index_count >= before.index_num]
        border = [name for name in full if headers[name].end_timestamp == covered][:1]
        kept &= set(in_row)
        if border:
            kept = set(in_row[: in_row.index(border[0]) + 1])
        kept &= set(unlisted)
    return set(unlisted) & set(new) == (set(unlisted) if step.arguments["last_exit_ok"] else kept)


@law("RMQSVC-5", IndexService, CLASS, on="load", unless=ours.LoadReplaces)
def second_load_lists_twice(step: Transition) -> bool:
    """A second load on one service lists every file twice.

    In segproof it lists every file once (RMQSVC-1).
    """
    before = names_of(step.before)
    return names_of(step.after)[: len(before)] == before


# --- beginning -----------------------------------------------------------------------------------


@law("RMQSVC-6", IndexService, CLASS, on=BEGINS)
def full_file_is_continued(step: Transition) -> bool:
    """The last file is returned while it is not full; otherwise a new file is created with the end
    offset and end timestamp of the full one as start values."""
    before, after = step.before.index_files, step.after.index_files
    if not step.succeeded or not needs_file(step.before):
        return not step.succeeded or step.is_unchanged
    time, offset = (before[-1].end_timestamp, before[-1].end_phy_offset) if before else (0, 0)
    time, offset = max(time, 0), max(offset, 0)
    is_new = after[-1].file_name not in step.before.files
    is_begun = after[-1].header == (time, time, offset, offset, 0, 1)
    return len(after) == len(before) + 1 and (is_begun or not is_new)


@law("RMQSVC-7", IndexService, CLASS, on=CREATES)
def name_is_time_of_creation(step: Transition) -> bool:
    """A new file's name is the local wall-clock time as 17 digits (yyyyMMddHHmmssSSS).

    The model's local time is UTC; segproof takes a later name if the name exists.
    """
    names, now = names_of(step.after)[len(step.before.index_files) :], step.before.files.now_ms
    if not all(re.fullmatch("[0-9]{17}", name) for name in names):
        return False
    moments = [datetime.strptime(f"{name}000+0000", "%Y%m%d%H%M%S%f%z") for name in names]
    times = {(moment - EPOCH) // timedelta(milliseconds=1) for moment in moments}
    return times <= {now} or (has(step.before, ours.NamesAreDistinct) and min(times) >= now)


@law("RMQSVC-8", IndexService, CLASS, on=CREATES)
def failing_creation_is_told(step: Transition) -> bool:
    """A failing file creation raises the illegal-monitor-state error, sets no error flag and is not
    retried.

    segproof raises the I/O error. Judged is a folder that can't be created, since a file has its
    name.
    """
    before, tells = step.before, has(step.before, ours.FailedCreationIsTold)
    is_judged = before.store_checkpoint.is_mapped and needs_file(before)
    if not is_judged or folder_of(before)[:-1] not in before.files:
        return True
    is_told = step.raised(ErrorKind.IO_ERROR) or step.raised(ErrorKind.INVALID_ARGUMENT)
    return not begun(step) and (is_told if tells else step.raised(ErrorKind.LOCK_STATE))


@law("RMQSVC-9", IndexService, CLASS, on=CREATES)
def names_of_one_millisecond(step: Transition) -> bool:
    """Two files created in one millisecond share one path and one set of bytes.

    segproof gives them names of their own.
    """
    names = [file.file_name for file in begun(step)]
    if not has(step.before, ours.NamesAreDistinct):
        return len(set(names)) <= 1
    return len(set(names)) == len(names) and not any(name in step.before.files for name in names)


@law("RMQSVC-10", IndexService, CLASS, on=f"flush {BEGINS}")
def full_file_moves_checkpoint(step: Transition) -> bool:
    """flush changes the checkpoint only for a full file with end timestamp > 0, and then sets its
    index timestamp to that value without taking a maximum.

    Beginning a new file flushes the full one before it.
    """
    before = step.before.index_files
    position = step.arguments.get("position", len(before) - 1 if begun(step) else -1)
    flushed = before[position : position + 1] if position >= 0 else ()
    ends = [file.end_timestamp for file in flushed if is_full(file) and file.end_timestamp > 0]
    expected = (ends[0], ends[0]) if ends else _covered(step.before)
    return not step.succeeded or _covered(step.after) == expected


def _covered(service: Any) -> tuple[int, int]:
    """Return the checkpoint's index timestamp in memory and in the file."""
    checkpoint = service.store_checkpoint
    return checkpoint.index_msg_timestamp, stored(service.files.image(checkpoint.name), 3)[2]


# --- ending --------------------------------------------------------------------------------------


def _expired(step: Transition) -> int:
    """Return how many files a deletion may take."""
    ends = [file.end_phy_offset for file in step.before.index_files[:-1]]
    offset = step.arguments["offset"]
    return next((n for n, end in enumerate(ends) if end >= offset), len(ends))


def _removed(step: Transition) -> int:
    return len(step.before.index_files) - len(step.after.index_files)


def _is_held(file: Any) -> bool:
    """Return whether somebody beside its owner holds a file."""
    return bool(file.ref_count > 1 or not file.is_available)


@law("RMQSVC-21", IndexService, CLASS, on="delete_expired_file")
def oldest_files_are_deleted(step: Transition) -> bool:
    """delete_expired(offset) removes the longest prefix of files, never the last one, with end
    offset < offset, and stops at the first that cannot be destroyed."""
    removed, names = _removed(step), names_of(step.before)
    if not step.succeeded or names_of(step.after) != names[removed:] or removed > _expired(step):
        return not step.succeeded
    is_stopped = removed == _expired(step) or _is_held(step.before.index_files[removed])
    gone = set(names[:removed]) - set(names[removed:])
    return is_stopped and gone.isdisjoint(images_in(step.after))


@law("RMQSVC-22", IndexService, CLASS, on="delete_expired_file")
def held_file_stays_listed(step: Transition) -> bool:
    """A file that could not be destroyed stays listed, gives no answers, and is tried again at the
    next call.

    It gives no answers because it is not available (RMQREF-4).
    """
    if not step.succeeded or _removed(step) >= _expired(step):
        return True
    kept = step.after.index_files[0]
    return not kept.is_available and bool(kept.ref_count > 0)


@law("RMQSVC-23", IndexService, CLASS, on="destroy shutdown")
def ending_empties_list(step: Transition) -> bool:
    """destroy empties the list and the directory of listed files; shutdown empties the list in
    releases >= 5.0 and does nothing in 4.x.

    A file that is still held stays in the directory.
    """
    before, left = step.before, set(step.before.files)
    if step.operation == "destroy":
        held = {file.file_name for file in before.index_files if _is_held(file)}
        left -= {file.file_name for file in before.index_files} - held
    elif has(before, older.ShutdownDoesNothing):
        return step.is_unchanged
    return not step.after.index_files and left == set(step.after.files)


@law("RMQSVC-24", IndexService, "RocketMQ IndexService, 5.0.0 on")
def total_size_counts_first_file(state: Any) -> bool:
    """total size = size of the first file times the number of files, in 64 bits (>= 5.0)."""
    size = size_of(state.hash_slot_num, state.index_num)
    return bool(state.total_size == size * len(state.index_files))
