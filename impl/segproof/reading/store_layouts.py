# SPDX-License-Identifier: Apache-2.0
"""Layouts of a RocketMQ store that are recognised and not read: by which names, and what to do.

The log of a usual store lies whole in `commitlog`. It does not where a broker is configured with
several paths (`storePathCommitLog=A:B:C`), or replicates with DLedger. A verdict by a part of a log
would be wrong, so such a store is left alone as a whole. A folder with older files alone, in a row
before all of the store's own, may be an archive of files that a broker would have removed, and one
that has copies of the store's own files too is a backup: such a store is read, and the folder is
named, with the files that the store's log has lost. Files may also be of another broker. So may
those beside files with other messages at the places of the store's own: if queues or index lead to
messages in them, they are named, and in no command.

Upstream: RocketMQ 5.5.1: MultiPathMappedFileQueue, DLedgerCommitLog; DLedger 0.3:
DLedgerMmapFileStore; StorePathConfigHelper, MessageRocksDBStorage, CompactionStore.
Laws: RMQDISK-42.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from enum import Enum
from typing import Final, NamedTuple

from segproof.counts import plural, verb
from segproof.errors import InvalidArgumentError
from segproof.files import Files
from segproof.hints import Hint, changes, writes
from segproof.reading.folder_names import has_folder, names_of
from segproof.reading.joined_logs import how_to_join
from segproof.reading.log_files_inside import log_files_inside
from segproof.reading.log_folders_around import (
    STORE_NAMES,
    is_of_log,
    is_same,
    log_folders_around,
    places_around,
)
from segproof.reading.log_rows import (
    LogFolder,
    Surroundings,
    begins,
    log_folder,
    log_in_store,
    rows_with,
    words_of_log_in_store,
)
from segproof.reading.same_log import doubt_of, has_other_broker, is_copy_of, lacked_by, written
from segproof.reading.store_reach import SamePlaces, Stretch, ends_of, has_queue_units, reach_of
from segproof.rocketmq.commit_log import COMMIT_LOG, LogFile, inferred_size

__all__ = [
    "DLEDGER_MEMBER",
    "Layout",
    "check_layout",
    "check_whole",
    "dledger_groups",
    "holds_log",
    "is_dledger",
    "is_rocksdb",
    "layout_around",
    "no_log_in",
    "rocksdb_lacks",
    "unread_layout",
]

OWN_NAMES: Final = frozenset({"abort", "checkpoint", "commitlog", "consumequeue"})
"""Names by which a folder is the store of a broker."""
DLEDGER: Final = "dledger-"
"""How the folder of a DLedger group member begins."""
DLEDGER_MAGICS: Final = (1, 2)
"""What an entry of DLedger begins with: a message, or the mark of a new leader."""
PART_NAMES: Final = frozenset({COMMIT_LOG, "index", "consumequeue"})
"""The parts of a store that are judged by themselves."""
LEVELS_OF_PART: Final = 4
"""A file of a queue is at consumequeue/TOPIC/QUEUE/NAME."""
TOLD_FILES_MAX: Final = 3
"""Files that a log lacks and that are named."""
DLEDGER_MEMBER: Final = changes(
    "put an empty directory in the place of this one: the member gets the log from the leader",
    only_if="its files are damaged, the group has a leader, it is another member, and every other"
    " member is level with it",
    if_wrong="messages that were acknowledged are lost: an empty member has forgotten its vote, and"
    " may elect one that lags, whose log all others then take",
    copy_step="leave its files as they are: nothing of them was read, so no finding says that they"
    " are damaged. Copy the directory away, and keep it until the member has caught up",
)
PART_ANSWER: Final = "an answer would be one of a part of the messages"
IN_DOUBT: Final = writes(
    "find out which broker wrote the files of each folder: the verb dump shows their messages. If"
    " they are of one broker, link each file into the folder commitlog of a copy of this store, and"
    " verify that. If the others are of another broker, make a copy of this store, or a link to it,"
    " in a new directory that has no such folder beside it, and verify or salvage that"
)
_MANIFEST = re.compile(r"MANIFEST-[0-9]{6,}")
_OF_ROCKSDB = re.compile(r"(?:MANIFEST|OPTIONS)-[0-9]{6,}|[0-9]{6,}\.(?:sst|blob)")


class Layout(NamedTuple):
    """A layout that is not read."""

    path: str
    """What shows it."""
    words: str
    hint: Hint
    is_beside: bool = False
    """Whether the store is read, and `path` is a folder with files that its log lacks."""
    files_beside: int = 0
    """How many these are."""


def check_layout(store: str, files: Files) -> Layout | None:
    """Refuse a store whose layout is not read. Return the folder beside it with files that its log
    lacks, or None if there is no such folder.

    Raises: InvalidArgumentError for a layout that is not read; OSError.
    """
    found = unread_layout(store, files)
    _refuse(found, "of such a store nothing is made, since it would lack a part")
    return found


def _refuse(found: Layout | None, why: str) -> None:
    if found is not None and not found.is_beside:
        raise InvalidArgumentError(f"{found.words}; {why}", path=found.path, hint=found.hint)


def check_whole(store: str, files: Files) -> None:
    """Return if a store is no part of a layout that is not read: readers would answer by a part.

    A usual store costs the listing of what lies around it: its queues are asked only if files of a
    log are there too. Raises: InvalidArgumentError for a layout that is not read.
    """
    around = Surroundings(files)
    try:
        is_asked = (
            not STORE_NAMES & {*names_of(store, files)}
            or dledger_groups(store, files)
            or log_folders_around(store, True, around)
        )
        if is_asked:
            _refuse(unread_layout(store, files, around, is_beside_told=False), PART_ANSWER)
    except OSError:
        return  # what can't be read is told where it is read


def no_log_in(store: str, files: Files) -> InvalidArgumentError:
    """Return the error of a verb that needs a commit log, and finds none in a store."""
    path, words = posixpath.join(store, COMMIT_LOG), "there is no commit log in this store"
    hint = "only the log holds messages: look for its files in lost+found or on a replica"
    if found := log_in_store(store, files):
        words += f", and {words_of_log_in_store(found)}"
        hint = "RMQDISK-23 of `segproof verify` says how to put them into the folder commitlog"
    elif inside := [one for one in log_files_inside(path, files) if one.is_told]:
        words += (
            f" by its names; {plural(len(inside), 'file')} of one {verb(len(inside), 'is', 'are')}"
        )
        words += " in what else the folder commitlog holds"
        hint = "RMQDISK-39 of `segproof verify` says how to put them into the folder commitlog"
    return InvalidArgumentError(words, path=path, hint=hint)


def unread_layout(
    store: str,
    files: Files,
    around: Surroundings | None = None,
    *,
    is_beside_told: bool = True,
) -> Layout | None:
    """Return the layout of a store that is not read at all, or in part; None for a usual store.

    `around` serves all stores of a pass, which may be beside each other. `is_beside_told`: also the
    folder beside a store that is read, whose files are compared with those of the same names.
    Raises: OSError.
    """
    around = around or Surroundings(files)
    groups = dledger_groups(store, files)
    own = log_folder(posixpath.join(store, COMMIT_LOG), files)
    if groups and (_leads_beyond(store, own, files) or _leads_into(store, groups, own, files)):
        return _dledger(groups)
    others = _other_folders(store, own, around)
    if own is not None and _are_older(store, own, others, around):
        return _beside(store, own, others, around) if is_beside_told else None
    if others.parts:
        return _several_paths(store, own, others, around)
    claimed = _claimed_by(store, own, around)
    return None if claimed is None else _several_paths(*claimed, around)


def holds_log(folder: str, files: Files) -> bool:
    """Return whether files of a commit log are in a folder of any name."""
    found = log_folder(folder, files)
    return (
        found is not None
        and is_of_log(found, files)
        and any(begins(one, files) for one in found.log_files)
    )


def layout_around(path: str, files: Files, around: Surroundings | None = None) -> Layout | None:
    """Return the unread layout of the store that a file or a folder is a part of, if it has one.

    The part may be a folder of the log outside of the store. `around` is as that of
    `unread_layout`. Raises: OSError.
    """
    around = around or Surroundings(files)
    below = posixpath.abspath(path)
    for _ in range(LEVELS_OF_PART):
        below, name = posixpath.split(below)
        if name in PART_NAMES:
            return unread_layout(below, files, around, is_beside_told=False)
    status = files.status(path)
    is_folder = status is not None and status.is_directory
    folder = posixpath.abspath(path if is_folder else posixpath.dirname(path))
    if not holds_log(folder, files):
        return None
    claimed = _claimed_by(folder, log_folder(folder, files), around)
    return None if claimed is None else _several_paths(*claimed, around)


def is_rocksdb(folder: str, files: Files) -> bool:
    """Return whether a folder is a database of RocksDB, or what is left of one.

    One that lacks its beginning has a file that no other program names so, and no folder.
    """
    try:
        names = files.list_directory(folder)
    except OSError:
        return False
    if "CURRENT" in names and any(_MANIFEST.fullmatch(name) for name in names):
        return True
    is_named = any(_OF_ROCKSDB.fullmatch(name) for name in names)
    return is_named and not any(has_folder(folder, name, files) for name in names)


def rocksdb_lacks(folder: str, files: Files) -> list[str]:
    """Return what a database of RocksDB lacks without which it can't be opened."""
    names = names_of(folder, files)
    lacks = [] if "CURRENT" in names else ["CURRENT"]
    has_manifest = any(_MANIFEST.fullmatch(name) for name in names)
    return lacks if has_manifest else [*lacks, "MANIFEST"]


# --- DLedger


def dledger_groups(store: str, files: Files) -> list[str]:
    """Return the folders of DLedger in a store that hold a log, or the store if it is one."""
    names = names_of(store, files)
    if "data" in names and is_dledger(store, files):
        return [store]
    # Each file of a partition of Kafka would be asked, if a name alone made a group of it.
    is_store = not OWN_NAMES.isdisjoint(names)
    groups = (one for one in names if one.startswith(DLEDGER) or (is_store and "." not in one))
    paths = (posixpath.join(store, one) for one in groups)
    return [one for one in paths if is_dledger(one, files)]


def is_dledger(folder: str, files: Files) -> bool:
    """Return whether a folder holds the log of a DLedger group: files of entries and of an index.

    Under its usual name either is enough, so that one damaged entry hides nothing; under another
    name both are there, and one file begins with an entry.
    """
    data = log_folder(posixpath.join(folder, "data"), files)
    if data is None:
        return False
    index = log_folder(posixpath.join(folder, "index"), files)
    is_named = posixpath.basename(posixpath.abspath(folder)).startswith(DLEDGER)
    if is_named and index is not None:
        return True
    if not is_named and index is None:
        return False
    log_files = (*data.log_files, *(index.log_files if index is not None else ()))
    firsts = [_first_number(one, files) for one in log_files]
    return not {*firsts}.isdisjoint(DLEDGER_MAGICS) or (is_named and firsts[0] in (0, None))


def _first_number(one: LogFile, files: Files) -> int | None:
    """Return the number that a file begins with; None if it can't be read."""
    with suppress(OSError), closing(files.open(one.path)) as file:
        return int.from_bytes(file.pread(4, 0), "big")
    return None


def _leads_beyond(store: str, own: LogFolder | None, files: Files) -> bool:
    """Return whether index or queues lead out of the usual log, or it has no message."""
    if own is None or not any(begins(one, files) for one in own.log_files):
        return True
    size = inferred_size(own.log_files)
    end = own.log_files[-1].start + size
    return bool(reach_of(store, [Stretch(end, 1 << 62)], files).counts[0])


def _leads_into(store: str, groups: Sequence[str], own: LogFolder | None, files: Files) -> bool:
    """Return whether index or queues lead to messages of a group that the usual log lacks.

    A broker that once started without DLedger began a usual log at offset 0 beside that of its
    group: both have messages at the same offsets.
    """
    folders = [log_folder(posixpath.join(one, "data"), files) for one in groups]
    data = [one for folder in folders if folder is not None for one in folder.log_files]
    log_files = own.log_files if own is not None else ()
    return SamePlaces(store, data, files).hold_what_another_lacks(
        SamePlaces(store, log_files, files)
    )


def _dledger(groups: Sequence[str]) -> Layout:
    names = ", ".join(posixpath.join(one, "data") for one in groups[:3])
    return Layout(
        groups[0],
        "a store of DLedger, which segproof does not read: the log and its messages lie in"
        f" {names}, each message behind a header of 48 bytes; nothing of it was judged",
        DLEDGER_MEMBER,
    )


# --- a log over several folders


class _Lacks(Enum):
    """What a log lacks, by the index and the queues beside it."""

    NOTHING = "nothing"
    BEGIN = "begin"
    """Only files before its first one, which may have expired."""
    FILES = "files"
    """Files after its first one, or all."""
    UNKNOWN = "unknown"
    """No queue is kept in files: what the index leads to is not all that the log held."""


class _Others(NamedTuple):
    """The other folders with files of a log."""

    parts: Sequence[LogFolder] = ()
    """Those that a broker may have written."""
    copies: Sequence[LogFolder] = ()
    """Folders with copies of the own files, and with files that the own log lacks."""
    doubted: Sequence[LogFolder] = ()
    """Folders with files that the own log lacks, and with other messages at the places of its own.
    They are of another broker, or of this one, which made a file again while it lacked a disk."""

    def with_own(self, own: LogFolder | None) -> list[LogFolder]:
        """Return all folders, the own one first."""
        return [*([own] if own is not None else []), *self.parts, *self.copies]


def _other_folders(store: str, own: LogFolder | None, around: Surroundings) -> _Others:
    """Return the other folders of the log, if queues or index lead to messages in them."""
    files = around.files
    lacks = _what_lacks(store, own, files)
    if lacks is _Lacks.NOTHING or not STORE_NAMES & {*names_of(store, files)}:
        return _Others()
    found: list[LogFolder] = []
    others: list[LogFolder] = []
    copies: list[LogFolder] = []
    doubted: list[LogFolder] = []
    for one in log_folders_around(store, lacks is not _Lacks.BEGIN, around):
        if own is not None and inferred_size(one.log_files) != inferred_size(own.log_files):
            continue
        is_copy = None if own is None else is_copy_of(one, own, around)
        if own is not None and is_copy and _is_older(written(one, around), own):
            if _adds_to(one, own.log_files, store, files):
                copies.append(one)
            continue
        # A broker that lacks a disk makes a file once more that was on it.
        if (own is not None and is_copy is False) and (
            lacks is not _Lacks.FILES or has_other_broker(one, own, files)
        ):
            doubted += [one] if _adds_to(one, own.log_files, store, files) else []
            continue
        known = _files_of(own, found)
        is_part = None if _is_copy(one, known, around) else _adds_to(one, known, store, files)
        if is_part:
            found.append(one)
        elif is_part is None:
            others.append(one)
    for one in others if found else ():  # the log lies over several folders: no copy, but a part
        places = SamePlaces(store, one.log_files, files)
        others_have = SamePlaces(store, _files_of(own, found), files)
        if places.hold_what_is_missing() and places.hold_what_another_lacks(others_have, fewest=1):
            found.append(one)
    if own is None:
        return _Others(found if len(found) > 1 else ())
    if not found:
        copies += _copies_with_more(own, others, store, around)
    if not found and not copies and not has_queue_units(store, files):
        found = rows_with(own, others, files)
    return _Others(found, copies, doubted)


def _copies_with_more(
    own: LogFolder, others: Sequence[LogFolder], store: str, around: Surroundings
) -> Iterator[LogFolder]:
    """Yield the folders with a copy of an own file, and with files that the own log has lost."""
    files = around.files
    for one in others:
        more = lacked_by(own, written(one, around))
        if not any(begins(each, files) for each in more.log_files):
            continue
        if is_copy_of(one, own, around) and _adds_to(more, (), store, files) is not False:
            yield one


def _are_older(store: str, own: LogFolder, others: _Others, around: Surroundings) -> bool:
    """Return whether the other files need not be read for a verdict: they lie beside files of
    the names of own ones, or in one folder, in a row that ends before the own files. These may have
    expired.

    A broker that has room on several disks makes files on each of them in turn.
    """
    if not others.parts:
        return bool(others.copies or others.doubted)
    if len(others.parts) != 1:
        return False
    other = written(others.parts[0], around)
    if not has_queue_units(store, around.files) and not doubt_of(other, own, around):
        return False
    size = inferred_size(own.log_files)
    older = sorted(one.start for one in other.log_files)
    after = sorted(one.start for one in own.log_files)
    rows = (range(row[0], row[0] + len(row) * size, size) for row in (older, after))
    return older[-1] < after[0] and [older, after] == [[*row] for row in rows]


def _beside(store: str, own: LogFolder, others: _Others, around: Surroundings) -> Layout:
    """Return the layout of a store beside folders with files that its log lacks."""
    first = min(one.start for one in own.log_files)
    parts, copies = (
        [lacked_by(own, written(one, around)) for one in some]
        for some in (others.parts, others.copies)
    )
    beside = sorted((*copies, *parts), key=lambda one: -len(one.log_files))
    starts = sorted({each.start for one in beside for each in one.log_files})
    older = [one for one in starts if one < first]
    lost = [one for one in starts if one > first]
    places = " and in ".join(["here", *(one.path for one in beside[1:])])
    doubts = [doubt for one in others.parts if (doubt := doubt_of(one, own, around))]
    words = []
    if lost:
        words.append(
            f"copies of files of the log of {store} lie {places}, with"
            f" {plural(len(lost), 'file')} that this log lacks, {_named(lost)}"
        )
    if older:
        count = plural(len(older), "file")
        lie = f"{count} of the log of {store} {verb(len(older), 'lies', 'lie')} {places}"
        may_be = f"{count} {places} may be of the log of {store} by the offsets of their messages"
        words.append(
            f"{may_be if parts else lie}, from before offset {first}, where its own files begin:"
            " copies of files that expired, or a folder that the broker reads too"
            " (storePathCommitLog)"
        )
    if copies:
        words.append(
            "where files of the same names as its own, also there, differ from these, the hint of"
            " `segproof verify` links those with the most sound messages"
        )
    words += [*doubts, *_doubted(store, own, others.doubted, around, not beside)]
    is_doubted = bool(doubts) or not beside
    folders = [*copies, *parts, own]
    beside += [lacked_by(own, written(one, around)) for one in others.doubted]
    return Layout(
        beside[0].path,
        "; ".join(words),
        _how_to_have_both(store, folders, around, bool(lost), is_doubted),
        is_beside=True,
        files_beside=len({each.start for one in beside for each in one.log_files}),
    )


def _doubted(
    store: str, own: LogFolder, folders: Sequence[LogFolder], around: Surroundings, is_first: bool
) -> Iterator[str]:
    """Yield in words what lies in each of the doubted folders, and what speaks against them.

    `is_first`: the finding is about the first of them, and its hint has no commands.
    """
    for number, one in enumerate(folders):
        lacked = sorted(each.start for each in lacked_by(own, written(one, around)).log_files)
        place = "here" if is_first and not number else f"in {one.path}"
        words = f"{plural(len(lacked), 'file')} {place} that this log lacks, {_named(lacked)},"
        words += f" may be of the log of {store} by the offsets of their messages"
        yield words if is_first else f"{words}: the commands of the hint leave them out"
        yield doubt_of(one, own, around)


def _named(starts: Sequence[int]) -> str:
    """Return the names of files of a log, of many the first ones."""
    more = len(starts) - TOLD_FILES_MAX
    names = ", ".join(f"{start:020d}" for start in starts[:TOLD_FILES_MAX])
    return f"{names} and {more} more" if more > 0 else names


def _how_to_have_both(
    store: str, folders: Sequence[LogFolder], around: Surroundings, is_lost: bool, is_doubted: bool
) -> Hint:
    """Return the hint that says how to copy a store together with the files of all its folders."""
    if is_doubted:
        return writes(
            "nothing if they are of another broker or expired. The verb dump shows their messages."
            " If they are of this log (storePathCommitLog names their folder, or did), make a copy"
            " of this store, link the files that its log lacks into its folder commitlog, and"
            " verify or salvage that. Keep the folder: where a file of one name has other messages"
            " than the store's own, the store lacks these"
        )
    _, both = how_to_join(store, folders, around)
    if is_lost:
        return both.after("to have in a copy of the store what its log lacks: ")
    return writes(
        "nothing if they were copied here before they expired. If storePathCommitLog names this"
        f" folder too, make a copy that has both: {both}"
    )


def _files_of(own: LogFolder | None, found: Sequence[LogFolder]) -> list[LogFile]:
    return [each for folder in (own, *found) if folder for each in folder.log_files]


def _is_copy(one: LogFolder, known: Sequence[LogFile], around: Surroundings) -> bool:
    """Return whether more than one of the written files of a folder are known by their names.

    A broker makes each file in one folder; the next one, which it makes before it needs it, is
    perhaps in another folder too.
    """
    starts = {each.start for each in known}
    return sum(each.start in starts for each in written(one, around).log_files) > 1


def _is_older(one: LogFolder, own: LogFolder) -> bool:
    """Return whether all files that a folder has alone are older than the own ones."""
    first = min(each.start for each in own.log_files)
    return all(each.start < first for each in lacked_by(own, one).log_files)


def _adds_to(one: LogFolder, known: Sequence[LogFile], store: str, files: Files) -> bool | None:
    """Return whether a folder has files that the known ones lack, and the store leads into them.

    None if nothing leads into them, so that nothing tells.
    """
    starts = {each.start for each in known}
    new = [each for each in one.log_files if each.start not in starts]
    return SamePlaces(store, new, files).hold_what_is_missing()


def _what_lacks(store: str, own: LogFolder | None, files: Files) -> _Lacks:
    """Return what a log lacks of the files that are led to."""
    if own is None:
        return _Lacks.FILES
    size = inferred_size(own.log_files)
    starts = [one.start for one in own.log_files]
    lowest, furthest = ends_of(store, files)
    is_row = starts == list(range(starts[0], starts[0] + len(starts) * size, size))
    if not is_row or furthest >= starts[-1] + size:
        return _Lacks.FILES
    if not has_queue_units(store, files):
        return _Lacks.UNKNOWN
    return _Lacks.BEGIN if lowest < starts[0] else _Lacks.NOTHING


def _claimed_by(
    folder: str, own: LogFolder | None, around: Surroundings
) -> tuple[str, LogFolder | None, _Others] | None:
    """Return the store near a lone log whose log this is a part of, with all folders of its log."""
    files, names = around.files, {*around.names(folder)}
    if own is None or STORE_NAMES & names:
        return None
    for path in dict.fromkeys(places_around(folder, True, around)):
        if not {"index", "consumequeue", "checkpoint"} & {*around.names(path)}:
            continue
        its_own = around.log(posixpath.join(path, COMMIT_LOG))
        others = _other_folders(path, its_own, around)
        if its_own is not None and _are_older(path, its_own, others, around):
            continue
        if any(is_same(one.path, own.path, files) for one in others.parts):
            return path, its_own, others
    return None


def _several_paths(
    store: str, own: LogFolder | None, others: _Others, around: Surroundings
) -> Layout:
    first, *rest = folders = others.with_own(own)
    doubts = [doubt for one in rest if (doubt := doubt_of(one, first, around))]
    is_sure = not doubts and has_queue_units(store, around.files)
    words, hint = how_to_join(store, folders, around, is_sure=is_sure)
    if doubts:
        words, hint = "; ".join([words, *doubts]), IN_DOUBT
    if own is not None:
        words = "; ".join([words, *_doubted(store, own, others.doubted, around, False)])
    return Layout(posixpath.join(store, COMMIT_LOG), words, hint)
