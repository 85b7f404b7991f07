# SPDX-License-Identifier: Apache-2.0
"""A store without a commit log, though its other parts show that it had one.

A broker that starts there makes a new log, which begins at offset 0. It removes what index and
queues lead to beyond that.

Upstream: RocketMQ 4.9.8 and 5.5.1: DefaultMessageStore.load, MappedFileQueue.load.
Laws: RMQDISK-23.
"""

import posixpath

from segproof.commands import quoted_path
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import changes, reads
from segproof.reading.log_rows import log_in_store, words_of_log_in_store
from segproof.rocketmq.commit_log import COMMIT_LOG
from segproof.verifying.reporting import Reporter

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
    "keep the store as it is until the log is found: look for its files in what RMQDISK-39 names,"
    " where else the broker keeps some (several paths in storePathCommitLog), in lost+found, in a"
    " backup or on a replica, and keep index and queues until then: they tell what is missing"
)


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
    put_in = f"mv -n {quoted_path(store)}/0* {quoted_path(folder)}/"
    put_in = f"`install -d {quoted_path(folder)} && {put_in}`"
    reporter.at(folder).add(
        "RMQDISK-23",
        f"{words}, and {words_of_log_in_store(found)}, where no broker reads them; {AT_A_START}",
        hint=changes(
            f"put them into the folder of the log with {put_in}, and verify the store again",
            only_if="these files are the log of this store, as the next verify shows: else it tells"
            " RMQDISK-44",
            if_wrong="index and queues are of another log than the one beside them: move the files"
            " back",
            copy_step="stop the broker and copy the store away",
        ),
    )
