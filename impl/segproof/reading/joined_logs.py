# SPDX-License-Identifier: Apache-2.0
"""How the folders over which a commit log lies make one store: which file of each name, by links.

A name may lie in two folders: a broker makes a file in one folder and, after a stop, perhaps once
more in another, or somebody copied it. Then the file with the most sound messages belongs into the
log. Where no file has all of them a person decides, and each of them stays in view: the others are
linked into a folder inside of the new log, where every later verify and salvage compares them. Of
files with the same bytes any one is linked.

Laws: RMQDISK-42.
"""

import fnmatch
import posixpath
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from segproof.commands import quoted_path
from segproof.counts import plural
from segproof.files import Files
from segproof.hints import Hint, writes
from segproof.reading.equal_files import is_same
from segproof.reading.folder_names import names_of
from segproof.reading.log_file_shares import share_of, sound_messages
from segproof.reading.log_rows import LogFolder, Surroundings, log_folder
from segproof.reading.new_places import own_place
from segproof.reading.same_log import is_zeros
from segproof.rocketmq.commit_log import COMMIT_LOG, LogFile, inferred_size

__all__ = ["ONE_LOG_FOLDER", "how_to_join"]

JOINED_PARTS: Final = ("index", "consumequeue", "config", "checkpoint")
LOG_NAMES: Final = f"0{'?' * 19}"
"""The names of log files, for a shell: other names are left where they are."""
TWICE: Final = "twice"
"""The folder inside of a joined log for the files about which a person decides."""

ONE_LOG_FOLDER: Final = (
    "before a broker starts, its storePathCommitLog must name the folder commitlog of the new store"
    " alone. If that or its readOnlyCommitLogStorePaths names an old folder too, it takes files of"
    " one name from two folders, of the old log and of the new one"
)
"""What a broker needs that serves the salvage of a log that lay over several folders."""


class _Twice(NamedTuple):
    """Files of one name in several folders."""

    words: str
    best: str
    """The path of that with the most sound messages."""
    undecided: tuple[str, ...] = ()
    """The paths of those that have, or may have, messages which the best one lacks."""


def how_to_join(
    store: str, folders: Sequence[LogFolder], around: Surroundings, *, is_sure: bool = True
) -> tuple[str, Hint]:
    """Return in words what lies over folders, and the hint that joins it elsewhere by links.

    `is_sure`: whether it is known that all are of one log. A folder is linked with all of its
    files, also those that a caller has left out. Cost: each file whose name is in two folders is
    read, some of them more than once.
    """
    files, places = around.files, ", ".join(one.path for one in folders)
    folders = [log_folder(one.path, files) or one for one in folders]
    twice = _twice(store, folders, around)
    words = (
        f"the commit log of the store {store} {'lies' if is_sure else 'may lie'} over"
        f" {len(folders)} folders (several paths in storePathCommitLog), which segproof does not"
        f" read together: {places}; nothing was judged by a part of it"
    )
    words += "".join(f"; {one.words}" for one in twice)
    new = quoted_path(own_place("joined", store, store))
    links = _links(folders, twice, f"{new}/commitlog/", files)
    beside = _beside(twice, f"{new}/commitlog/{TWICE}")
    parts = [name for name in JOINED_PARTS if name in names_of(store, files)]
    paths = " ".join(_quoted(posixpath.join(store, name)) for name in parts)
    copied = [f"cp -an {paths} {new}/"] if parts else []
    steps = ", ".join(
        f"`{one}`" for one in (f"install -d {new}/commitlog", *copied, *links, *beside)
    )
    return words, writes(
        "stop the broker, make a new directory on the same host, copy index, consumequeue,"
        " config and checkpoint of this store into it, and link each log file into its folder"
        f" commitlog, with {steps}. Then verify, rebuild or salvage {new}. The folders stay as"
        f" they are.{_decide(twice)} No broker serves {new}, whose log is links, but a salvage of"
        f" it: {ONE_LOG_FOLDER}. If the broker's storePathCommitLog names one folder only,"
        " somebody moved files out of it: they belong where the others are, if there is room"
    )


def _links(
    folders: Sequence[LogFolder], twice: Sequence[_Twice], target: str, files: Files
) -> list[str]:
    """Return the commands that link each file of the log into one folder.

    Of the links of a name the later one stays: what is not right then is linked once more. Also a
    folder, or a link to nothing, may have the name of a file in another folder.
    """
    last: dict[str, str] = {}
    right = {posixpath.basename(one.best): one.best for one in twice}
    count = 0
    for folder in folders:
        for name in fnmatch.filter(names_of(folder.path, files), LOG_NAMES):
            last[name] = posixpath.join(folder.path, name)
            count += 1
    for one in (each for folder in reversed(folders) for each in folder.log_files):
        right.setdefault(posixpath.basename(one.path), one.path)
    link = "ln -sf" if len(last) < count else "ln -s"
    again = [path for name, path in sorted(right.items()) if path != last.get(name, path)]
    return [
        *(f"{link} {_quoted(one.path)}/{LOG_NAMES} {target}" for one in folders),
        *(f"ln -sf {_quoted(path)} {target}" for path in again),
    ]


def _beside(twice: Sequence[_Twice], folder: str) -> list[str]:
    """Return the commands that link beside the log the files about which a person decides."""
    commands = []
    for number, path in enumerate((path for one in twice for path in one.undecided), 1):
        commands += [f"install -d {folder}/{number}", f"ln -s {_quoted(path)} {folder}/{number}/"]
    return commands


def _decide(twice: Sequence[_Twice]) -> str:
    """Return by what a person decides where no file of a name has all messages."""
    names = [posixpath.basename(one.best) for one in twice if one.undecided]
    if not names:
        return ""
    return (
        f" Of {', '.join(names)} the file with the most sound messages is linked. The others are"
        f" linked in the folder {TWICE} beside, so that verify and salvage say what these have"
        " alone, which a salvage leaves out. Decide by these messages, which the verb dump shows:"
        " if their application needs these and not those of the file with the most, put the link"
        " to their file in its place before you salvage; if it needs both, salvage once with each,"
        " and keep both."
    )


def _twice(store: str, folders: Sequence[LogFolder], around: Surroundings) -> list[_Twice]:
    """Return the files whose name is in several folders, if they differ."""
    every = [each for folder in folders for each in folder.log_files]
    own = posixpath.join(store, COMMIT_LOG)
    found: dict[int, list[LogFile]] = {}
    for one in sorted(every, key=lambda one: posixpath.dirname(one.path) != own):
        found.setdefault(one.start, []).append(one)
    size = inferred_size(sorted(every)) if every else 0
    several = [same for _, same in sorted(found.items()) if len(same) > 1]
    differ = (same for same in several if not _are_equal(same, around.files))
    return [_compared(same, size, around) for same in differ]


def _are_equal(same: Sequence[LogFile], files: Files) -> bool:
    """Return whether all of some files have the same bytes; False if one can't be read."""
    with suppress(OSError):
        return all(is_same(same[0].path, one.path, files) for one in same[1:])
    return False


def _compared(same: Sequence[LogFile], size: int, around: Surroundings) -> _Twice:
    """Return which of the files of one name has the messages of all of them, or the most.

    Of equal ones it is the first. Without a sound message in any file, one with damaged messages
    may have what another one lacks.
    """
    files = around.files
    written = {one.path: not is_zeros(one, around) for one in same}
    counts = {one.path: _sound(one, size, files) if written[one.path] else 0 for one in same}

    def worth(one: LogFile) -> tuple[int, bool, bool]:
        count = counts[one.path]
        return count or 0, count is not None, written[one.path]

    best = max(same, key=worth)
    where = " and in ".join(posixpath.dirname(one.path) for one in same)
    words = f"the file {posixpath.basename(best.path)} lies in {where}"
    place, most = posixpath.dirname(best.path), counts[best.path] or 0
    others = [one for one in same if one is not best and written[one.path]]
    lacking = [(one, _lacking(one, best, size, files)) for one in others]
    if most:
        lacking = [(one, count) for one, count in lacking if count != 0]
    if not lacking:
        what = f"has each sound message of the other{'s' * (len(same) > 2)}"
        what = what if others else "contains messages"
        if not most:
            what = "contains no sound message, and no other one contains anything"
        if not written[best.path]:
            what = "is as good as any, since none has a message"
        return _Twice(f"{words}; that in {place} {what}", best.path)
    told = [f"that in {place} has {plural(most, 'sound message')}, the most"]
    told = told if most else [f"that in {place} has no sound message"]
    for one, count in lacking:
        mine = f"has {count} that it lacks" if count else "has other bytes, and none either"
        mine = "can't be read" if count is None else mine
        told.append(f"that in {posixpath.dirname(one.path)} {mine}")
    return _Twice(f"{words}; {', '.join(told)}", best.path, tuple(one.path for one, _ in lacking))


def _sound(one: LogFile, size: int, files: Files) -> int | None:
    """Return the sound messages of a file; None if it can't be read."""
    with suppress(OSError):
        return sound_messages(one, size, files)
    return None


def _lacking(one: LogFile, best: LogFile, size: int, files: Files) -> int | None:
    """Return the sound messages of a file that the best one lacks; None if one can't be read."""
    with suppress(OSError):
        return share_of(one, best.path, size, files).lacking
    return None


def _quoted(path: str) -> str:
    """Return a path from the root on, as a shell takes it: a link needs such a path."""
    return shlex.quote(posixpath.abspath(path))
