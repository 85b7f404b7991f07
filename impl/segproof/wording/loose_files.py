# SPDX-License-Identifier: Apache-2.0
"""Files of segments that lie beside partitions, in none of them: what they may be of.

Several of them with a log are mostly one partition without its folder, such as an archive that was
unpacked at the wrong place. They are told together, with what names the partition.

Laws: DISK-3.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from segproof.commands import quoted_path
from segproof.counts import plural
from segproof.files import Files
from segproof.hints import Hint, writes
from segproof.inventory.walk import DataDirectory
from segproof.reading.directory_kinds import STRAY
from segproof.reading.file_contents import content_of
from segproof.reading.file_names import HIGH_WATERMARK, METADATA, RECOVERY
from segproof.reading.log_joins import LogChain
from segproof.reading.log_order import offsets_of
from segproof.reading.new_places import own_place

HINT_OF_MIXED = writes(
    "copy all of them to another disk, and sort the copies by hand: a folder of its own for the"
    " logs of each partition, whose offsets follow each other. `segproof dump` of each log shows"
    " its offsets, times and leader epochs. All of them in one folder are no partition: a broker"
    " would load records of several as one"
)
IF_ONE = (
    "see with `segproof dump` of each log whether its keys, times and leader epochs are those of"
    " one partition. If they are not, sort copies of them by hand into a folder for each partition;"
    " if they are, "
)
NAMED_MAX = 3
"""At most this many partitions are named to which loose files may belong."""
Absent = Mapping[str, Mapping[str, int]]
"""Partitions that checkpoints name and that have no folder, as TOPIC-N, each with its offset in
each checkpoint."""


def stray_words(item: DataDirectory, files: Files) -> Iterator[tuple[str, str, Hint | None]]:
    """Yield the path of each stray of a directory that is told, what it is, and what to do.

    The first log of a set is told for all of it. One that is told by itself has no steps.
    """
    path, strays = item.path, item.strays
    together = strays.together
    for name in sorted(strays.names):
        full = posixpath.join(path, name)
        if name not in together:
            yield full, STRAY, None
        elif name == strays.logs[0]:
            bases = {log: base for base, log in strays.loose if log.endswith(".log")}
            what, hint = _told(path, bases, (together, strays.small), item.absent, files)
            words = (
                f"{STRAY}. {plural(len(strays.loose), 'file')} of segments lie so,"
                f" {plural(len(strays.logs), 'log')} with {what}"
            )
            yield full, words, hint


def _told(
    path: str,
    bases: Mapping[str, int],
    names: tuple[Sequence[str], Sequence[str]],
    absent: Absent,
    files: Files,
) -> tuple[str, Hint]:
    """Return in words what loose logs are, and what to do with them.

    `bases` has the logs in order, each with the offset in its name; `names` are all files, and
    the small ones of them.
    """
    together, small = names
    end: int | None = None
    reached, reaching = -1, ""
    chain, gap = LogChain(), ""
    for log, base in bases.items():
        sound = None
        with suppress(OSError):  # the file is told as one that was not looked into
            sound = offsets_of(posixpath.join(path, log), files)
        first, last = sound or (base, None)
        if min(base, first) <= reached:
            words = (
                f"offsets that overlap, as those of several partitions or of two copies of one:"
                f" {reaching} reaches to offset {reached}, and {log} begins at {min(base, first)}"
            )
            return f"{words}{_identity(path, small, absent, None, files)}", HINT_OF_MIXED
        against = chain.take(posixpath.join(path, log), files)
        if against:
            words = (
                f"offsets that rise, as those of several partitions: {log} follows {reaching}, but"
                f" {against}"
            )
            return f"{words}{_identity(path, small, absent, None, files)}", HINT_OF_MIXED
        if reaching and base > reached + 1 and not gap:
            gap = f"no log here has the offsets {reached + 1} to {base - 1}, before {log}"
        end = None if last is None else last + 1
        if last is not None:
            reached, reaching = last, log
    owner = _owner(absent, end)
    begin = next(iter(bases.values()))
    offsets = f"offsets {begin} to {end - 1}" if end else f"offsets from {begin} on"
    identity = _identity(path, small, absent, owner, files)
    if gap:
        words = f"{offsets}, of one or several partitions without their folders: {gap}{identity}"
        return words, _steps(path, together, None, if_one=IF_ONE)
    words = f"{offsets}, as those of one partition without its folder{identity}"
    return words, _steps(path, together, owner)


def _owner(absent: Absent, end: int | None) -> str | None:
    """Return the only partition whose log ended there, as its checkpoints say; else None.

    A recovery point or a high watermark is the end of a log at most, and never above it.
    """
    known = [
        name
        for name, told in absent.items()
        if end is not None
        and end in (told.get(RECOVERY), told.get(HIGH_WATERMARK))
        and max(told.values()) <= end
    ]
    return known[0] if len(known) == 1 else None


def _identity(
    path: str, small: Sequence[str], absent: Absent, owner: str | None, files: Files
) -> str:
    """Return in words what names the partition."""
    told = ""
    if METADATA in small:
        content = content_of(posixpath.join(path, METADATA), files)
        told += f"; beside them is {content.words}" if content is not None else ""
    if owner is not None:
        told += (
            f"; the checkpoints here name {owner} with this end, and no folder of that name is here"
        )
    elif absent:
        named = ", ".join(list(absent)[:NAMED_MAX])
        named += f" and {len(absent) - NAMED_MAX} more" if len(absent) > NAMED_MAX else ""
        told += (
            f"; the checkpoints here name {named}, whose folders are not here, and do not say that"
            " these files are of one of them"
        )
    return told


def _steps(path: str, names: Iterable[str], owner: str | None, *, if_one: str = "") -> Hint:
    """Return how the files get a folder, and are looked into: in a copy, on another disk.

    `if_one` are words about the condition, if the files may be of several partitions.
    """
    folder = "unknown-0" if owner is None else owner
    copy = posixpath.join(own_place("loose", path, path), folder)
    kinds = sorted({posixpath.splitext(name)[1] for name in names} - {""})
    whole = [name for name in names if not posixpath.splitext(name)[1] or name == METADATA]
    patterns = [f"{quoted_path(posixpath.join(path, ''))}*{one}" for one in kinds]
    patterns = [one for one in patterns if not one.endswith("*.metadata")]
    given = " ".join([*patterns, *(quoted_path(posixpath.join(path, one)) for one in whole)])
    named = "" if owner is not None else (
        ", and give the folder the name of its topic and partition, which these files do not say"
    )  # fmt: skip
    place = quoted_path(copy)
    return writes(
        f"{if_one}copy them into a folder of their own, on another disk: `install -d {place}`,"
        f" `cp -an {given} {place}`, and `segproof verify {place}`{named}."
        " Only that folder, in its log directory, gives a broker the records"
    )
