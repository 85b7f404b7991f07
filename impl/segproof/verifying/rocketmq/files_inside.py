# SPDX-License-Identifier: Apache-2.0
"""What lies in the folder `commitlog` and is no file of the log by its name.

It may hold files of this log all the same: in a folder, packed, or under another name. Then nobody
may move it away before its messages are in the log.

Laws: RMQDISK-39.
"""

import posixpath
from collections.abc import Collection, Sequence

from segproof.commands import quoted_path
from segproof.counts import plural, verb
from segproof.files import Files
from segproof.hints import Hint, changes, reads
from segproof.reading.log_files_inside import LogFileInside, log_files_inside
from segproof.rocketmq.commit_log import log_file_name
from segproof.verifying.reporting import Reporter
from segproof.verifying.rocketmq.store_checks import report_stray

NAMED_MAX = 3
"""Files that a message names one by one."""
ARE_KNOWN = reads(
    "compare each file in it with the one of its name in the log (`cmp`), and keep it as it is"
    " until they are the same or the broker serves all messages of it"
)


def report_inside(path: str, known: Collection[int], files: Files, reporter: Reporter) -> None:
    """Report what is in `commitlog` beside the files of the log, which begin at `known`."""
    found = log_files_inside(path, files)
    if not found:
        report_stray(path, reporter, "no broker starts with it")
        return
    lacking = [one for one in found if one.start not in known]
    told = lacking or found
    count, names = len(told), ", ".join(_name(one, path) for one in told[:NAMED_MAX])
    names += f" and {count - NAMED_MAX} more" if count > NAMED_MAX else ""
    of_log = f"{plural(count, 'file')} of a commit log {verb(count, 'is', 'are')} here"
    end = "where no broker reads it" if count == 1 else "where no broker reads them"
    missing = f"the log has no file of {'its offset' if count == 1 else 'their offsets'}: copy"
    missing += f" {'it' if count == 1 else 'them'} there before anything else"
    if not lacking:
        missing = f"the log has {'a file' if count == 1 else 'files'} of the same name"
    hint = _put_back(lacking, posixpath.dirname(path)) if lacking else ARE_KNOWN
    report_stray(path, reporter, f"{of_log}, {end}: {names}; {missing}", hint=hint)


def _name(one: LogFileInside, stray: str) -> str:
    """Return how a message names a file: below the stray, with its offset if its name is none."""
    own = log_file_name(one.start)
    name = posixpath.relpath(one.path, posixpath.dirname(stray))
    return name if posixpath.basename(name) == own else f"{name} (the log's {own})"


def _put_back(lacking: Sequence[LogFileInside], folder: str) -> Hint:
    """Return the hint that puts files into the log that it lacks."""
    steps = [f"`{_step(one, folder)}`" for one in lacking[:NAMED_MAX]]
    words = ", ".join(steps)
    if len(lacking) > NAMED_MAX:
        words += ", and the others likewise, each to the name of its offset"
    return changes(
        f"copy what the log lacks to its place with {words}, and verify the store again; leave what"
        " is here until the broker serves these messages",
        only_if="these are files of this log, as the next verify shows: else it tells RMQDISK-44 or"
        " RMQDISK-56",
        if_wrong="the log has messages of another one: remove the copies again",
        copy_step="stop the broker and copy the store away",
    )


def _step(one: LogFileInside, folder: str) -> str:
    target = quoted_path(posixpath.join(folder, log_file_name(one.start)))
    source = quoted_path(one.path)
    if not one.packed:
        return f"cp -pn {source} {target}"
    unpack = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".xz": "xz -dc", ".zst": "zstd -dc"}
    unpack |= {".lz4": "lz4 -dc", ".zip": "unzip -p"}
    return f"{unpack[one.packed]} {source} > {target}"
