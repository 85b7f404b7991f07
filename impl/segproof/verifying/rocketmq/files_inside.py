# SPDX-License-Identifier: Apache-2.0
"""What lies in the folder `commitlog` and is no file of the log by its name.

It may hold files of this log all the same: in a folder, packed, or under another name. Then nobody
may move it away before its messages are in the log. Nothing may be copied into the log but a file
that it lacks.

Laws: RMQDISK-39.
"""

import posixpath
from collections.abc import Sequence

from segproof.commands import quoted_path
from segproof.counts import plural, verb
from segproof.files import Files
from segproof.hints import Hint, changes, reads
from segproof.reading.log_files_inside import LogFileInside, files_that_lack, log_files_inside
from segproof.rocketmq.commit_log import LogFile, log_file_name
from segproof.verifying.reporting import Reporter
from segproof.verifying.rocketmq.store_checks import report_stray

NAMED_MAX = 3
"""Files that a message names one by one."""
NO_BROKER = "no broker starts with it"
ARE_KNOWN = reads(
    "compare each file in it with the one of its name in the log (`cmp`), and keep it as it is"
    " until they are the same or the broker serves all messages of it"
)
KEEP = reads(
    "keep it as it is, and put nothing of it into the log: no file that the log lacks is known"
    " to be in it (of packed files .gz, .bz2 and .xz are looked into). Find out who put it there,"
    " and whether a broker serves what it holds"
)
UNPACK = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".xz": "xz -dc"}


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
    known = {one.start for one in log_files} | {*unread}
    for path, found in inside.items():
        mine = [one for one in found if lacking.get(one.start) == one]
        if not found:
            report_stray(path, reporter, NO_BROKER)
        elif mine:
            words = f"the log has no file of {'its offset' if len(mine) == 1 else 'their offsets'}"
            words += ": what the log lacks there is not lost, as far as it is whole here"
            hint = _put_back(mine, posixpath.dirname(path))
            report_stray(path, reporter, f"{_are_here(mine, path)}; {words}", hint=hint)
        elif all(one.is_told and one.start in known for one in found):
            words = f"the log has {'a file' if len(found) == 1 else 'files'} of the same name"
            report_stray(path, reporter, f"{_are_here(found, path)}; {words}", hint=ARE_KNOWN)
        else:
            report_stray(path, reporter, NO_BROKER, hint=KEEP)
    return lacking


def _are_here(told: Sequence[LogFileInside], path: str) -> str:
    """Return in words which files of a commit log lie at a stray path."""
    count, names = len(told), ", ".join(_name(one, path) for one in told[:NAMED_MAX])
    names += f" and {count - NAMED_MAX} more" if count > NAMED_MAX else ""
    of_log = f"{plural(count, 'file')} of a commit log {verb(count, 'is', 'are')} here"
    end = "where no broker reads it" if count == 1 else "where no broker reads them"
    return f"{of_log}, {end}: {names}"


def _name(one: LogFileInside, stray: str) -> str:
    """Return how a message names a file: below the stray, with its offset if its name is none."""
    own = log_file_name(one.start)
    name = posixpath.relpath(one.path, posixpath.dirname(stray))
    return name if posixpath.basename(name) == own else f"{name} (the log's {own})"


def _put_back(lacking: Sequence[LogFileInside], folder: str) -> Hint:
    """Return the hint that puts files into the log that it lacks."""
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
        steps.append(f"`cp -pn {source} {target}`")
    words += f"copy what the log lacks to its place with {', '.join(steps)}"
    if len(lacking) > NAMED_MAX:
        words += ", and the others likewise, each to the name of its offset"
    return changes(
        f"{words}, and verify the store again; leave what is here until the broker serves these"
        " messages",
        only_if="these are files of this log, which neither an operator nor the broker deleted on"
        " purpose, and each is the best copy of its offset (compare those with one name by `cmp`)",
        if_wrong="the log has messages of another one or older ones, or damaged ones: where the"
        " next verify tells an error that this one did not tell, remove the copies again",
        copy_step="stop the broker and copy the store away",
    )
