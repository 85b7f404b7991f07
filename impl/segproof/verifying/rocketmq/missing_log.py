# SPDX-License-Identifier: Apache-2.0
"""A store without a commit log, though its other parts show that it had one.

A broker that starts there makes a new log, which begins at offset 0. It removes what index and
queues lead to beyond that. Files of a log that lie in the store itself are put into its folder only
if all have one length: a broker ends its start with others.

Upstream: RocketMQ 4.9.8 and 5.5.1: DefaultMessageStore.load, MappedFileQueue.load.
Laws: RMQDISK-23.
"""

import posixpath

from segproof.commands import quoted_path
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import Hint, changes, reads, writes
from segproof.reading.folder_names import names_of
from segproof.reading.log_rows import log_folder, log_in_store, words_of_log_in_store
from segproof.rocketmq.commit_log import COMMIT_LOG
from segproof.wording.reporting import Reporter

AT_A_START = (
    "a broker that starts with this store begins a new log at offset 0, and removes what index and"
    " queues know of the old one"
)
NOT_HERE = reads(
    "keep the store as it is until the log is found. If its broker keeps the log elsewhere"
    " (storePathCommitLog), verify a directory in which links named commitlog, consumequeue, index,"
    " checkpoint and config lead to all parts: no verdict covers the log here. Else look for its"
    " files in lost+found, in a backup or on a replica, and keep index and queues until then: they"
    " tell what is missing"
)
EMPTY = reads(
    "keep the store as it is until the log is found: look for its files in what RMQDISK-39 or"
    " DISK-1 names in it, where else the broker keeps some (several paths in storePathCommitLog),"
    " in lost+found, in a backup or on a replica, and keep index and queues until then: they tell"
    " what is missing"
)
OF_SEVERAL_LENGTHS = writes(
    "keep the store as it is: what lies in it under such names has several lengths, or is no file,"
    " and a broker starts only if all files of its log have the same length. Make a copy of the"
    " store on another disk, with the files of the log in its folder commitlog, and save that with"
    " `segproof salvage`, which makes files of one length"
)
NAMES = f"0{'?' * 19}"
"""The names of the files of a log as a shell matches them: each offset is below 10 ** 19."""


def report_missing_log(
    store: str, files: Files, reporter: Reporter, *, is_there: bool, is_index_alone: bool = False
) -> None:
    """Report that a store has no file of a log. `is_there`: the folder exists, and is empty.

    Of an index that is alone, perhaps with its checkpoint, that is noted: it was copied by itself.
    """
    folder = posixpath.join(store, COMMIT_LOG)
    words = "it holds no file" if is_there else "it is not here"
    found = log_in_store(store, files)
    if found is None:
        reporter.at(folder).add(
            "RMQDISK-23",
            f"{words}, and index, queues or checkpoint tell of messages; {AT_A_START}",
            hint=EMPTY if is_there else NOT_HERE,
            severity=Severity.NOTE if is_index_alone else None,
        )
        return
    reporter.at(folder).add(
        "RMQDISK-23",
        f"{words}, and {words_of_log_in_store(found)}, where no broker reads them; {AT_A_START}",
        hint=_put_in(store, folder) if _have_one_length(store, files) else OF_SEVERAL_LENGTHS,
    )


def _have_one_length(store: str, files: Files) -> bool:
    """Return whether all that `NAMES` matches are files of a log, with the same length."""
    log = log_folder(store, files)
    matched = [one for one in names_of(store, files) if len(one) == len(NAMES) and one[0] == "0"]
    found = () if log is None else log.log_files
    lengths = {posixpath.basename(one.path): one.size_bytes for one in found}
    return all(one in lengths for one in matched) and len(set(lengths.values())) == 1


def _put_in(store: str, folder: str) -> Hint:
    """Return the hint that puts the files in the store into the folder of its log."""
    put_in = f"mv -n {quoted_path(store)}/{NAMES} {quoted_path(folder)}/"
    put_in = f"`install -d {quoted_path(folder)} && {put_in}`"
    return changes(
        f"put them into the folder of the log with {put_in}, and verify the store again",
        only_if="these files are the log of this store, as the next verify shows: else it tells"
        " RMQDISK-44; and their length is that of its files (mappedFileSizeCommitLog)",
        if_wrong="index and queues are of another log than the one beside them: move the files"
        " back",
        copy_step="stop the broker and copy the store away",
    )
