# SPDX-License-Identifier: Apache-2.0
"""Situations whose hints are constants that checks give in the place of a rule's.

They are those that change or remove files: nobody follows such a hint but the steps here.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from segproof.reading.unfinished import MARKER
from segproof_harness.files.shipped_directories import KAFKA
from segproof_tests.built_hints import PARTITION, STORE, Situation
from segproof_tests.partition_hints import broker, log, three_logs
from segproof_tests.store_hints import sound, topics_from_backup, with_config

SNAPSHOT = KAFKA / "compacted" / "logdir" / "bootstrap.checkpoint"
TIERED = "0_AAAAAAAAAAAAAAAAAAAAAQ"
CACHE = "data/remote-log-index-cache"


def link_elsewhere(folder: Path) -> None:
    """Let a partition be in a second data directory by a link."""
    log(broker(folder, "data/a", "a") / "t-0", range(3))
    (broker(folder, "data/b", "b") / "t-0").symlink_to("../a/t-0")


def link_beside(folder: Path) -> None:
    """Let a partition be another one too, by a link."""
    log(broker(folder) / "t-0", range(3))
    (folder / "data" / "t-1").symlink_to("t-0")


def move_out(path: str) -> Callable[[Path], object]:
    """Return what moves a file, a link or the files of a pattern out of the directory."""

    def step(folder: Path) -> None:
        (folder / "out").mkdir()
        for one in sorted(folder.glob(path)):
            one.rename(folder / "out" / one.name)

    return step


def broken_bootstrap(folder: Path) -> None:
    """Cut the first snapshot of a node."""
    log(broker(folder) / "t-0", range(3))
    data = SNAPSHOT.read_bytes()
    (folder / "data" / SNAPSHOT.name).write_bytes(data[:-9])


def other_bootstrap(folder: Path) -> None:
    """Take the snapshot of another node."""
    shutil.copyfile(SNAPSHOT, folder / "data" / SNAPSHOT.name)


def index_of_no_name(folder: Path) -> None:
    """Add an index whose name is no offset."""
    (three_logs(folder) / "first.index").write_bytes(b"")


def cached(folder: Path) -> None:
    """Write a cache of the indexes of a remote segment, with an index that is damaged."""
    log(broker(folder) / "t-0", range(3))
    cache = folder / CACHE
    cache.mkdir()
    (cache / f"{TIERED}.index").write_bytes(bytes(5))
    for suffix in (".timeindex", ".txnindex"):
        (cache / f"{TIERED}{suffix}").write_bytes(b"")


def unfinished_rebuild(folder: Path) -> None:
    """Leave the mark of a rebuild in place in a store."""
    (sound(folder) / MARKER).mkdir()


def folder_as_index(folder: Path) -> None:
    """Put a folder in the place of a time index."""
    (three_logs(folder) / f"{0:020d}.timeindex").mkdir()


def folder_of_topics(folder: Path) -> None:
    """Put a folder in the place of a file of topics."""
    with_config()(folder)
    (folder / STORE / "config" / "topics.json").mkdir()


def other_topics(folder: Path) -> None:
    """Move the folder out, and put the file of a backup in its place."""
    move_out(f"{STORE}/config/topics.json")(folder)
    topics_from_backup(folder)


SITUATIONS = (
    Situation(
        "a folder has the name of a time index", "wording/reporting.WRONG_KIND",
        folder_as_index, "DISK-1", step=move_out(f"{PARTITION}/*.timeindex"),
    ),
    Situation(
        "a folder has the name of a file of topics",
        "verifying/rocketmq/config_checks.OTHER_KIND",
        folder_of_topics, "DISK-1", (STORE,), step=other_topics,
    ),
    Situation(
        "a partition is in two data directories by a link",
        "verifying/log_directories.HINT_OF_LINK",
        link_elsewhere, "DISK-48", ("data/a", "data/b"), step=move_out("data/b/t-0"),
    ),
    Situation(
        "a partition is another one too, by a link",
        "verifying/log_directories.HINT_OF_SHARED",
        link_beside, "DISK-26", ("data",), step=move_out("data/t-1"),
    ),
    Situation(
        "the first snapshot of a node is cut", "verifying/metadata_snapshots.OF_BOOTSTRAP",
        broken_bootstrap, "DISK-51", ("data",), step=other_bootstrap,
    ),
    Situation(
        "an index has a name that is no offset", "verifying/partition_names.MOVE_OUT_INDEX",
        index_of_no_name, "FILE-2", step=move_out(f"{PARTITION}/first.index"),
    ),
    Situation(
        "a file of topics has fewer queues than there are", "reading/config_lacks.FEWER",
        with_config(topics__json='{"topicConfigTable":{"T":{"readQueueNums":1}}}'),
        "RMQDISK-57", (STORE,), step=topics_from_backup,
    ),
    Situation(
        "an index in the cache of remote segments is damaged",
        "wording/segment_files.FETCH_AGAIN",
        cached, "OFFIDX-1", ("data",), step=move_out(f"{CACHE}/*"),
    ),
    Situation(
        "a rebuild of a store in place has not ended",
        "verifying/unfinished_outputs.REBUILD_AGAIN",
        unfinished_rebuild, "DISK-61", (STORE,),
    ),
)  # fmt: skip
"""The situations of both systems."""
ELSEWHERE = {
    "reading/config_offsets.WRITE_OFFSET": "test_followed_steps.py: RMQDISK-54",
    "reading/store_layouts.DLEDGER_MEMBER": "a running group gives the log to its member",
    "verifying/log_directories.HINT_OF_COPIED_ID": "`_report_copied_ids` puts words before it",
    "wording/rules.MOVE_OUT": "test_followed_steps.py: FILE-2",
    "rebuilding/partition_files.COMPLETE": "a broker completes the swap",
    "verifying/transaction_checks.HANGING_HINT": "a running cluster ends the transaction",
    **{f"verifying/small_files.REMEDIES {number}": "test_followed_steps.py: CKPT-3"
       for number in range(4)},
}  # fmt: skip
"""The other constants that change or remove files: who follows them, or why no test can."""
