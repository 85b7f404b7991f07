# SPDX-License-Identifier: Apache-2.0
"""What lies in the folder `commitlog` and is no file of the log by its name.

It may hold files of this log all the same: in a folder, packed, or under another name. Then nobody
may move it away before its messages are in the log. Nothing may be copied into the log but a file
that it lacks or has damaged, and only with the length of the log's files: a broker ends its start
with a file of another length.

Upstream: RocketMQ 5.5.1: MappedFileQueue.load.
Laws: RMQDISK-39.
"""

import posixpath
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from segproof.commands import quoted_path
from segproof.counts import plural, verb
from segproof.files import Files, status_of
from segproof.hints import Hint, changes, reads, writes
from segproof.reading.equal_files import is_same
from segproof.reading.log_file_shares import share_of
from segproof.reading.log_files_inside import (
    LogFileInside,
    files_that_lack,
    is_loaded,
    length_of_files,
    log_files_inside,
)
from segproof.reading.new_places import own_place
from segproof.reading.packed_log_files import UNPACKED_SUFFIXES, with_one_unpacked
from segproof.rocketmq.commit_log import LogFile, log_file_name
from segproof.verifying.rocketmq.store_checks import report_stray, words_of_stray
from segproof.wording.reporting import Reporter

NAMED_MAX = 3
"""Files that a message names one by one."""
KEEP = writes(
    "keep it as it is, and put nothing of it into the log: no file that the log lacks is known"
    " to be in it (of packed files .gz, .bz2 and .xz are looked into: unpack another one"
    " into a folder inside of commitlog in a copy of the store, and verify that copy). Find out who"
    " put it there, and whether a broker serves what it holds"
)
OTHER_FIRST = reads(
    "keep it as it is, and see what the finding about the other one says; then verify again, which"
    " compares this one with the log"
)
OTHER_LENGTH = writes(
    "keep it as it is, and put nothing of it into the log: a broker starts only if all files of the"
    " log have the same length. Save what the log has with `segproof salvage STORE --out DIR2`,"
    " which leaves this one out. The verb dump shows its messages: their application knows whether"
    " those that the log lacks are still wanted. If it is a part of a copy, look for the whole file"
    " where it was copied from, or on a replica"
)
ARE_KNOWN = reads(
    "compare each file in it, as it is unpacked, with the one of its name in the log (`cmp`), and"
    " keep it somewhere until they are the same or the broker serves all messages of it"
)
DAMAGED = writes(
    "keep it as it is: it may have messages that nothing else has. Make a copy out of the"
    " store, and look at what can be unpacked of that copy (bzip2recover makes a file of each block"
    " of .bz2; gzip -dc prints all up to the damage, even if only the checksum is wrong; in .gz and"
    " .xz a stream behind the damage is unpacked by itself). Verify a copy of the store with it in"
    " a folder inside of commitlog (a part that begins inside of a message is not looked into)"
)
UNPACK = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".xz": "xz -dc"}


class _Known(NamedTuple):
    """A file inside of `commitlog` whose offset a file of the log has too."""

    inside: LogFileInside
    """With its length as it is unpacked."""
    log_file: LogFile | None
    """None: the log's can't be read."""
    is_same: bool = False
    """Whether both have the same bytes."""
    has_sound: bool = False
    """Whether this file has a sound message, or the same bytes as the log's file."""
    more: int | None = None
    """Sound messages that the log's file lacks; None: unknown."""
    fewer: int = 0
    """Sound messages of the log's file that this one lacks."""
    is_damaged: bool = False
    """Whether it is packed and could not be unpacked, and so compared, to its end."""


def report_inside(
    strays: Sequence[str], log_files: Sequence[LogFile], unread: Sequence[int], files: Files,
    reporter: Reporter,
) -> dict[int, LogFileInside]:  # fmt: skip
    """Report what is in `commitlog` beside the files of the log; `unread` ones can't be read.

    Return the files that the log lacks and that lie there, by their offsets.
    """
    inside = {path: log_files_inside(path, files) for path in strays}
    every = [one for found in inside.values() for one in found]
    lacking = files_that_lack(every, log_files, unread, files)
    size = length_of_files(every, log_files)
    known = {one.start: one for one in log_files}
    for path, found in inside.items():
        mine = [one for one in found if lacking.get(one.start) == one]
        if not found:
            report_stray(path, reporter, words_of_stray(path, status_of(files, path)))
        elif mine:
            words = f"the log has no file of {'its offset' if len(mine) == 1 else 'their offsets'}"
            words += ": what the log lacks there is not lost, as far as it is whole here"
            words += _beside(mine, every, path, files)
            words += _lengths([one for one in mine if not one.packed], size, path)
            whole = [one for one in mine if not one.is_partial(size)]
            hint = OTHER_LENGTH if log_files else OTHER_FIRST
            hint = _put_back(whole, posixpath.dirname(path), size) if whole else hint
            _report(path, f"{_are_here(mine, path)}; {words}", hint, reporter)
        elif better := [lacking[one.start] for one in found if one.start in lacking]:
            words = f"{_name(better[0], path)} {_is_better(better[0], found, size)}"
            _report(path, f"{_are_here(found, path)}; {words}", OTHER_FIRST, reporter)
        elif all(one.start in known or one.start in unread for one in found):
            told = [_compared(one, known.get(one.start), size, files) for one in found]
            _report_known(path, told, size, reporter)
        else:
            _report(path, words_of_stray(path, status_of(files, path)), KEEP, reporter)
    return lacking


def _report(path: str, words: str, hint: Hint, reporter: Reporter) -> None:
    """Report a stray; of one that brokers load, a hint that lets it lie says what not to do."""
    if is_loaded(posixpath.basename(path)) and not hint.only_if:
        hint = hint.after("start no broker while it is in this folder by this name: ")
    report_stray(path, reporter, words, hint=hint)


def _compared(one: LogFileInside, log_file: LogFile | None, size: int, files: Files) -> _Known:
    """Return what the log's file has of a file inside."""
    if log_file is None or (one.packed and one.packed not in UNPACKED_SUFFIXES):
        return _Known(one, log_file)
    is_damaged = False
    with suppress(OSError):
        if one.packed:
            longest = max(size, log_file.size_bytes)
            files, length, is_damaged = with_one_unpacked(one.path, one.packed, longest, files)
            if length > longest:
                return _Known(one, log_file)
            one = one._replace(size_bytes=length)
        copy = LogFile(one.start, one.path, one.size_bytes)
        if is_same(one.path, log_file.path, files):
            return _Known(one, log_file, True, True, more=0, is_damaged=is_damaged)
        share = share_of(copy, log_file.path, max(size, copy.size_bytes), files)
        back = share_of(log_file, one.path, max(size, log_file.size_bytes), files)
        more, fewer = share.lacking, back.lacking
        return _Known(one, log_file, False, share.sound > 0, more, fewer, is_damaged)
    return _Known(one, log_file)


def _report_known(path: str, found: Sequence[_Known], size: int, reporter: Reporter) -> None:
    """Report files that the log has too: the same ones, worse ones, better ones.

    A better one gets the place of the log's file if it has the length of the log's files: `size`.
    """
    inside = [one.inside for one in found]
    words = f"the log has {'a file' if len(found) == 1 else 'files'} of the same name"
    more = sum(one.more or 0 for one in found)
    not_in_log = f"{plural(more, 'sound message')} of it {verb(more, 'is', 'are')} not there"
    damaged = [one for one in found if one.is_damaged]
    better = [one for one in found if one.more and not one.fewer and not one.is_damaged]
    is_unclear = any(one.more is None for one in found)
    # Behind a begin that is lost, each sound message says the offset at which it lies.
    of_others = [one for one in found if not one.has_sound or (one.more and one.inside.is_denied)]
    if any(not one.inside.is_told for one in of_others):
        words = f"{words_of_stray(path, None)}{_damages(damaged, path)}"
        _report(path, words, DAMAGED if damaged else KEEP, reporter)
        return
    if is_unclear:
        hint = ARE_KNOWN
    elif damaged and not better:
        words += f"; {not_in_log}" if more else ", with each sound message that was compared"
        hint = DAMAGED
    elif not damaged and any(one.more and one not in better for one in found):
        words += f"; {not_in_log}, and that one has others that this one lacks"
        hint = _move_out(path, found, more)
    elif better:
        words += f"; {not_in_log}{_lengths([one.inside for one in better], size, path)}"
        whole = [one for one in better if one.inside.size_bytes == size]
        hint = _replace(whole, posixpath.dirname(path)) if whole else OTHER_LENGTH
    else:
        assert not damaged
        is_same = all(one.is_same for one in found)
        how = "with the same bytes" if is_same else "with each sound message of this one"
        words += f", {how}"
        hint = _move_out(path, found)
    words += _damages(damaged, path)
    _report(path, f"{_are_here(inside, path)}; {words}", hint, reporter)


def _damages(damaged: Sequence[_Known], path: str) -> str:
    """Return how far packed files could be unpacked, of those that are damaged."""
    told = [
        f"; {_name(one.inside, path)} is damaged from unpacked byte {one.inside.size_bytes} on:"
        " what lies behind was not compared"
        for one in damaged[:NAMED_MAX]
    ]
    more = f"; {len(damaged) - NAMED_MAX} more are damaged" * (len(damaged) > NAMED_MAX)
    return f"{''.join(told)}{more}"


def _lengths(found: Sequence[LogFileInside], size: int, path: str) -> str:
    """Return which files have another length than those of the log."""
    odd = [one for one in found if one.size_bytes != size]
    named = [
        f"{_name(one, path)} has {plural(one.size_bytes, 'byte')}{' unpacked' * bool(one.packed)}"
        for one in odd[:NAMED_MAX]
    ]
    more = f" and {len(odd) - NAMED_MAX} more another length" * (len(odd) > NAMED_MAX)
    end = f", but a file of this log has {size}: a broker ends its start with one of another length"
    return f"; {', '.join(named)}{more}{end}" if odd else ""


def _is_better(best: LogFileInside, found: Sequence[LogFileInside], size: int) -> str:
    """Return in words why another file than those found is the one to look at first."""
    if best.is_partial(size):
        return "has no fewer sound messages"
    if best.packed or any(one.is_partial(size) for one in found if one.start == best.start):
        return "may be the whole file, and comes first"
    return "has no fewer sound messages, and is to be put back"


def _beside(
    mine: Sequence[LogFileInside], every: Sequence[LogFileInside], path: str, files: Files
) -> str:
    """Return which other copies of an offset a message names."""
    best = {one.start: one for one in mine}
    told: list[str] = []
    for one in every:
        if one.start in best and one != best[one.start] and len(told) < NAMED_MAX:
            has_same = False
            with suppress(OSError):
                has_same = is_same(one.path, best[one.start].path, files)
            how = "the same bytes" if has_same else "no more sound messages"
            how = "unknown content" if one.packed and not has_same else how
            told.append(f"; {_name(one, path)} is a copy of it too, with {how}")
    return "".join(told)


def _move_out(path: str, found: Sequence[_Known], more: int = 0) -> Hint:
    """Return the hint that moves out what the log has too, but for `more` sound messages."""
    store = posixpath.dirname(posixpath.dirname(path))
    place = quoted_path(own_place("moved-out", store or ".", path))
    compare = [
        f"`{_comparison(one.inside, quoted_path(one.log_file.path))}`"
        for one in found
        if one.is_same and one.log_file is not None
    ]
    many = ", and so on for the others" if len(compare) > NAMED_MAX else ""
    same = f"{', '.join(compare[:NAMED_MAX])}{many} tells no difference"
    only_if = "no message in it is lacking in the log, as verify has just compared them"
    if more:
        only_if = "you have compared the two, such as with the verb dump"
        only_if += ", of a packed one an unpacked copy" * any(one.inside.packed for one in found)
        only_if += ", and the log's file is the one to keep there"
    elif compare:
        only_if = f"{same}, so that the log has the same"
    return changes(
        f"move it out of the store with `mkdir -p {place} && mv -n {quoted_path(path)} {place}/`,"
        " and keep it there until the broker serves these messages",
        only_if=only_if,
        if_wrong=f"no broker reads {plural(more, 'message')} of it"
        if more
        else "messages that are in it alone are read by no broker, until it is put back",
        copy_step="stop the broker; what is moved is kept as a copy",
    )


def _comparison(one: LogFileInside, log_file: str) -> str:
    """Return the command that compares a file with one of the log, whose path is quoted."""
    own = quoted_path(one.path)
    return (
        f"{UNPACK[one.packed]} {own} | cmp - {log_file}" if one.packed else f"cmp {own} {log_file}"
    )


def _replace(better: Sequence[_Known], folder: str) -> Hint:
    """Return the hint that gives the place of damaged files of the log to better copies.

    What lies in the folder of the log by another name goes out of it: no broker may start with it.
    """
    place = quoted_path(own_place("moved-out", posixpath.dirname(folder) or ".", folder))
    steps = []
    for one in better[:NAMED_MAX]:
        assert one.log_file is not None
        own, copy = quoted_path(one.log_file.path), quoted_path(one.inside.path)
        step, packed = f"mkdir -p {place} && mv -n {own} {place}/", one.inside.packed
        if packed:  # a new file belongs to who runs the command
            old = f"{place}/{posixpath.basename(one.log_file.path)}"
            step += f" && test ! -e {own} && {UNPACK[packed]} {copy} > {own}"
            step += f" && chown --reference={old} {own}"
        else:
            step += f" && cp -pn {copy} {own}"
        if posixpath.dirname(one.inside.path) == folder:
            step += f" && {_comparison(one.inside, own)} && mv -n {copy} {place}/"
        steps.append(f"`{step}`")
    words = f"give the copies the places of the log's files with {', '.join(steps)}"
    words += ", and the others likewise" if len(better) > NAMED_MAX else ""
    return changes(
        f"{words}, and verify again",
        only_if="these are files of this log, and verify has found no message in the log's files"
        " that the copies lack",
        if_wrong="the log has messages of another one: put the files back from the new directory",
        copy_step="stop the broker and copy the store away",
    )


def _are_here(told: Sequence[LogFileInside], path: str) -> str:
    """Return in words which files of a commit log lie at a stray path, and what a broker does."""
    count, names = len(told), ", ".join(_name(one, path) for one in told[:NAMED_MAX])
    names += f" and {count - NAMED_MAX} more" if count > NAMED_MAX else ""
    of_log = f"{plural(count, 'file')} of a commit log {verb(count, 'is', 'are')} here"
    if told[0].path == path:
        return f"{of_log}: {names}; {words_of_stray(path, None)}"
    end = "where no broker reads it" if count == 1 else "where no broker reads them"
    return f"{of_log}, {end}: {names}"


def _name(one: LogFileInside, stray: str) -> str:
    """Return how a message names a file: below the stray, with its offset if its name is none."""
    own = log_file_name(one.start)
    name = posixpath.relpath(one.path, posixpath.dirname(stray))
    return name if posixpath.basename(name) == own else f"{name} (the log's {own})"


def _put_back(lacking: Sequence[LogFileInside], folder: str, size: int) -> Hint:
    """Return the hint that puts files into the log that it lacks.

    `size`: the length of the log's files, which an unpacked file must have; 0: unknown.
    """
    some = lacking[:NAMED_MAX]
    names = {one.path: log_file_name(one.start) for one in some}
    packed, words = [one for one in some if one.packed], ""
    if packed:
        steps = ["`mkdir DIR2 DIR2/commitlog`"]
        for one in packed:
            source = quoted_path(one.path)
            steps.append(f"`{UNPACK[one.packed]} {source} > DIR2/commitlog/{names[one.path]}`")
        steps.append("`segproof verify DIR2`")
        words = f"unpack into DIR2, a new directory outside of the store, with {', '.join(steps)};"
        words += " go on only if each of these ended without an error, and then "
    steps = []
    for one in some:
        source = f"DIR2/commitlog/{names[one.path]}" if one.packed else quoted_path(one.path)
        target = quoted_path(posixpath.join(folder, names[one.path]))
        is_whole = f"test {size} -eq $(wc -c < {source}) && " if one.packed and size else ""
        steps.append(f"`{is_whole}cp -pn {source} {target}`")
    words += f"copy what the log lacks to its place with {', '.join(steps)}"
    if len(lacking) > NAMED_MAX:
        words += ", and the others likewise, each to the name of its offset"
    then = ", and verify the store again before a broker starts: it then says how to move what is"
    then += " here out of commitlog"
    if posixpath.dirname(some[0].path) == folder:
        store = posixpath.dirname(folder) or "."
        place, own = quoted_path(own_place("moved-out", store, some[0].path)), some[0].path
        target = quoted_path(posixpath.join(folder, names[own]))
        then = "; then, before a broker starts, move the other name out of commitlog with"
        then += f" `{_comparison(some[0], target)} && mkdir -p {place}"
        then += f" && mv -n {quoted_path(own)} {place}/`, keep it there until the broker serves"
        then += " these messages, and verify the store again"
    return changes(
        f"{words}{then}",
        only_if="these are files of this log, which neither an operator nor the broker deleted on"
        " purpose, each has the length of all its files (mappedFileSizeCommitLog), and each is the"
        " best copy of its offset (compare those with one name by `cmp`)",
        if_wrong="the log has messages of another one or older ones, or damaged ones: where the"
        " next verify tells an error that this one did not tell, remove the copies again",
        copy_step="stop the broker and copy the store away",
    )
