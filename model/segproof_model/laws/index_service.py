# SPDX-License-Identifier: Apache-2.0
"""The laws of the index service: which files are listed, begun and deleted.

Those of building and asking are in `index_building`.

Used by: the harness, the generated pages.
"""

import re
from datetime import datetime
from typing import Any

from segproof_model.language.integers import int64_at
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import succeeded
from segproof_model.laws.key_judging import size_of
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.remembering import remembered
from segproof_model.rocketmq.index_service import IndexService

STRUCTURE = "index-service"
CLASS = "RocketMQ IndexService, 4.0.0 to 5.5.1"
CREATING = ("get_and_create_last_index_file", "retry_get_and_create_index_file", "build_index")
NAME_FORMAT = "%Y%m%d%H%M%S"


def is_of_service(transition: Transition, *operations: str) -> bool:
    """Return whether an index service that is not closed executed one of the operations."""
    before = transition.before
    is_open = isinstance(before, IndexService) and before.checkpoint.is_mapped
    return is_open and transition.operation in operations


def folder_of(service: Any) -> str:
    """Return the path of the folder of index files, with the slash behind it."""
    return f"{service.store_path}/index/" if service.store_path else "index/"


def names_of(service: Any) -> list[str]:
    """Return the names of the listed files."""
    return [file.file_name[len(folder_of(service)) :] for file in service.files]


def children(service: Any) -> dict[str, bool]:
    """Return what the folder holds: each name, and whether it is a folder itself."""
    start = len(folder_of(service))
    paths = [path[start:] for path in service.directory if path.startswith(folder_of(service))]
    return {path.partition("/")[0]: "/" in path for path in paths}


def is_number(name: str) -> bool:
    """Return whether Java parses the name as an int64."""
    match = re.fullmatch(r"[+-]?(\d+)", name)
    if match is None or max(match[1]) >= "\U00010000":
        return False
    return -(2**63) <= int(name) < 2**63


def in_order(names: Any) -> list[str]:
    """Return names as Java sorts them: by UTF-16 units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


@remembered
def listed(service: Any) -> tuple[Any, ...]:
    """Return the files of the list as they are now."""
    files: tuple[Any, ...] = service.index_files
    return files


@remembered
def begun(transition: Transition) -> list[Any]:
    """Return the files that the operation added to the list."""
    files: list[Any] = list(listed(transition.after))
    return files[len(transition.before.files) :]


def needs_file(service: Any) -> bool:
    """Return whether the list has no file with room at its end."""
    return not service.files or service.files[-1].index_count >= service.files[-1].index_num


def _numbered(service: Any) -> list[str]:
    return in_order(name for name in children(service) if is_number(name))


def _listed_by_load(transition: Transition) -> list[str]:
    """Return the names that a load added to those listed before."""
    replaces = transition.before.profile.rmq_load_replaces
    return names_of(transition.after)[0 if replaces else len(transition.before.files) :]


def _bytes(service: Any, name: str) -> bytes | None:
    found: bytes | None = service.directory.read(folder_of(service) + name)
    return found


def _end_time(service: Any, name: str) -> int:
    """Return the end timestamp that a file keeps, 0 where it is too short for one."""
    return int64_at((_bytes(service, name) or b"").ljust(16, b"\0"), 8)


@law("RMQSVC-1", structure=STRUCTURE, scope="step", source=CLASS)
def files_are_listed_in_order(transition: Transition) -> bool:
    """load takes the directory entries in lexicographic order of the whole path: "10" before "100"
    before "9"."""
    if not is_of_service(transition, "load"):
        return True
    added = _listed_by_load(transition)
    return added == in_order(set(added))


@law("RMQSVC-2", structure=STRUCTURE, scope="step", source=CLASS)
def any_numbered_file_is_listed(transition: Transition) -> bool:
    """load skips a non-numeric name without deleting it (3.2.6 ends there), accepts a numeric file
    of any size (growing a short one), and returns false at a numeric directory, keeping the files
    loaded so far.

    segproof refuses a file of another size, and grows none but one of no bytes.
    """
    if not is_of_service(transition, "load"):
        return True
    before, after = transition.before, transition.after
    others = [name for name in children(before) if not is_number(name)]
    if any(_bytes(before, name) != _bytes(after, name) for name in others):
        return False
    numbered, folders = _numbered(before), children(before)
    if transition.outcome is False:
        first = next((name for name in numbered if folders[name]), None)
        reached = numbered[: numbered.index(first)] if first is not None else []
    else:
        reached = numbered
        if succeeded(transition) and any(folders[name] for name in numbered):
            return False
    if isinstance(transition.outcome, Raised):
        return True
    size = size_of(before.hash_slot_num, before.index_num)
    kept = [name for name in reached if _bytes(after, name) is not None]
    grown = all(len(_bytes(after, name) or b"") >= size for name in kept)
    deletes = not transition.arguments["last_exit_ok"]
    return _listed_by_load(transition) == kept and grown and (deletes or kept == reached)


@law("RMQSVC-3", structure=STRUCTURE, scope="step", source=CLASS)
def missing_folder_is_empty(transition: Transition) -> bool:
    """load of a missing directory, or of a path that is a file, returns true and lists nothing."""
    if not is_of_service(transition, "load") or children(transition.before):
        return True
    return transition.outcome is True and not _listed_by_load(transition)


@law("RMQSVC-4", structure=STRUCTURE, scope="step", source=CLASS)
def uncovered_files_are_deleted(transition: Transition) -> bool:
    """After an abnormal exit load deletes exactly the files whose end timestamp is greater than the
    checkpoint's index timestamp; equality keeps the file."""
    if not is_of_service(transition, "load") or transition.outcome is not True:
        return True
    before, after = transition.before, transition.after
    covered = before.checkpoint.index_msg_timestamp
    is_clean = transition.arguments["last_exit_ok"]
    listed = set(names_of(before))  # flushed first by a load that lists the files anew
    for name in set(_numbered(before)) - listed:
        expected = is_clean or _end_time(before, name) <= covered
        if expected is not (_bytes(after, name) is not None):
            return False
    return True


@law("RMQSVC-5", structure=STRUCTURE, scope="step", source=CLASS)
def second_load_lists_twice(transition: Transition) -> bool:
    """A second load on one service lists every file twice.

    That of segproof lists them anew.
    """
    if not is_of_service(transition, "load") or transition.outcome is not True:
        return True
    before, after = names_of(transition.before), names_of(transition.after)
    if transition.before.profile.rmq_load_replaces:
        return len(set(after)) == len(after)
    present = [name for name in _numbered(transition.after) if not children(transition.after)[name]]
    return after == before + present


@law("RMQSVC-6", structure=STRUCTURE, scope="step", source=CLASS)
def full_file_is_continued(transition: Transition) -> bool:
    """The last file is returned while it is not full; otherwise a new file is created with the end
    offset and end timestamp of the full one as start values."""
    if not is_of_service(transition, *CREATING[:2]) or not succeeded(transition):
        return True
    before, after = transition.before, transition.after
    last = listed(after)[-1]
    if transition.outcome != last:
        return False
    if not needs_file(before):
        return bool(after == before)
    if len(after.files) != len(before.files) + 1:
        return False
    if not before.files:
        return bool(last.begin_timestamp == last.end_timestamp == last.end_phy_offset == 0)
    full = before.files[-1]
    offset, time = max(full.end_phy_offset, 0), max(full.end_timestamp, 0)
    starts = (last.begin_phy_offset, last.end_phy_offset, last.begin_timestamp, last.end_timestamp)
    return bool(starts == (offset, offset, time, time) and last.index_count == 1)


@law("RMQSVC-7", structure=STRUCTURE, scope="step", source=CLASS)
def name_is_time_of_creation(transition: Transition) -> bool:
    """A new file's name is the local wall-clock time as 17 digits (yyyyMMddHHmmssSSS).

    The model's local time is UTC; segproof takes a later name where one is taken.
    """
    if not is_of_service(transition, *CREATING):
        return True
    before = transition.before
    for name in names_of(transition.after)[len(before.files) :]:
        if re.fullmatch("[0-9]{17}", name) is None:
            return False
        moment = datetime.strptime(name[:14] + "+0000", NAME_FORMAT + "%z")
        time_ms = int(moment.timestamp()) * 1000 + int(name[14:])
        late = time_ms > before.now_ms and before.profile.rmq_names_distinct
        if time_ms != before.now_ms and not late:
            return False
    return True


@law("RMQSVC-8", structure=STRUCTURE, scope="step", source=CLASS)
def failing_creation_is_told(transition: Transition) -> bool:
    """A failing file creation raises the illegal-monitor-state error, sets no error flag and is not
    retried.

    segproof raises the I/O error. What is judged is a folder that cannot be: a file has its name.
    """
    if not is_of_service(transition, *CREATING) or not needs_file(transition.before):
        return True
    before, after = transition.before, transition.after
    if folder_of(before)[:-1] not in before.directory:
        return transition.outcome != Raised(ErrorKind.LOCK_STATE) or not begun(transition)
    expected = Raised(before.profile.rmq_creation_error)
    if before.profile.rmq_checks_geometry and transition.outcome != expected:
        return transition.outcome == Raised(ErrorKind.INVALID_ARGUMENT)
    return transition.outcome == expected and bool(after.files == before.files)


@law("RMQSVC-9", structure=STRUCTURE, scope="step", source=CLASS)
def names_of_one_millisecond(transition: Transition) -> bool:
    """Two files created in one millisecond share one path and one set of bytes.

    segproof gives them names of their own.
    """
    if not is_of_service(transition, *CREATING):
        return True
    files = begun(transition)
    names = [file.file_name for file in files]
    if transition.before.profile.rmq_names_distinct:
        fresh = not any(name in transition.before.directory for name in names)
        return fresh and len(set(names)) == len(names)
    same = [file for file in listed(transition.after) if file.file_name in names]
    return len({file.to_bytes() for file in same}) <= 1 and len(set(names)) <= 1


def _covered(service: Any) -> tuple[int, int]:
    """Return the checkpoint's index timestamp in memory and in the file."""
    checkpoint = service.store_checkpoint
    data = checkpoint.directory.read(checkpoint.name) or b""
    return checkpoint.index_msg_timestamp, int64_at(data.ljust(24, b"\0"), 16)


@law("RMQSVC-10", structure=STRUCTURE, scope="step", source=CLASS)
def full_file_moves_checkpoint(transition: Transition) -> bool:
    """flush changes the checkpoint only for a full file with end timestamp > 0, and then sets its
    index timestamp to that value without taking a maximum.

    A new file has the full one before it flushed.
    """
    if not is_of_service(transition, "flush", *CREATING[:2]) or not succeeded(transition):
        return True
    before, after = transition.before, transition.after
    if transition.operation == "flush":
        position = transition.arguments["position"]
    else:
        position = len(before.files) - 1 if begun(transition) else -1
    if not 0 <= position < len(before.files):
        return _covered(after) == _covered(before)
    file = before.files[position]
    if file.index_count < file.index_num or file.end_timestamp <= 0:
        return _covered(after) == _covered(before)
    return _covered(after) == (file.end_timestamp, file.end_timestamp)


def _expired(service: Any, offset: int) -> int:
    """Return how many files a deletion may take."""
    ends = [file.end_phy_offset for file in service.files[:-1]]
    return next((n for n, end in enumerate(ends) if end >= offset), len(ends))


def _is_held(file: Any) -> bool:
    """Return whether somebody beside its owner holds a file."""
    return bool(file.ref_count > 1 or not file.is_available)


@law("RMQSVC-21", structure=STRUCTURE, scope="step", source=CLASS)
def oldest_files_are_deleted(transition: Transition) -> bool:
    """delete_expired(offset) removes the longest prefix of files, never the last one, with end
    offset < offset, and stops at the first that cannot be destroyed."""
    if not is_of_service(transition, "delete_expired_file"):
        return True
    before, after = transition.before, transition.after
    removed = len(before.files) - len(after.files)
    most = _expired(before, transition.arguments["offset"])
    if names_of(after) != names_of(before)[removed:] or not 0 <= removed <= most:
        return False
    if removed < most and not _is_held(before.files[removed]):
        return False
    gone = set(names_of(before)[:removed]) - set(names_of(after))
    return not any(_bytes(after, name) is not None for name in gone)


@law("RMQSVC-22", structure=STRUCTURE, scope="step", source=CLASS)
def held_file_stays_listed(transition: Transition) -> bool:
    """A file that could not be destroyed stays listed, answers nothing, and is tried again at the
    next call."""
    if not is_of_service(transition, "delete_expired_file"):
        return True
    before, after = transition.before, transition.after
    removed = len(before.files) - len(after.files)
    if removed >= _expired(before, transition.arguments["offset"]):
        return True
    kept = listed(after)[0]
    again = kept.select_phy_offset((), "", 64, -(2**63), 2**63 - 1)
    answers = isinstance(again.outcome, tuple) and bool(again.outcome)
    return not kept.is_available and not answers and kept.ref_count > 0


@law("RMQSVC-23", structure=STRUCTURE, scope="step", source=CLASS)
def ending_empties_list(transition: Transition) -> bool:
    """destroy empties the list and the directory of listed files; shutdown empties the list in
    releases >= 5.0 and does nothing in 4.x.

    A file that somebody holds stays in the directory.
    """
    before, after = transition.before, transition.after
    if is_of_service(transition, "destroy"):
        held = {file.file_name for file in before.files if _is_held(file)}
        paths = {file.file_name for file in before.files} - held
        return not after.files and not any(path in after.directory for path in paths)
    if not is_of_service(transition, "shutdown"):
        return True
    if not before.profile.rmq_shutdown_clears_list:
        return bool(after == before)
    return not after.files and children(after) == children(before)


@law("RMQSVC-24", structure=STRUCTURE, scope="state", source="RocketMQ IndexService, 5.0.0 on")
def total_size_counts_first_file(state: Any) -> bool:
    """total size = size of the first file times the number of files, in 64 bits (>= 5.0)."""
    if not isinstance(state, IndexService):
        return True
    size = size_of(state.hash_slot_num, state.index_num) if state.files else 0
    return state.total_size == size * len(state.files)
