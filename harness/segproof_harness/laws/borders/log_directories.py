# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a log directory: which folders and small files are in it."""

from segproof.findings import Severity
from segproof.kafka.producer_snapshot import write_snapshot
from segproof_harness.laws.borders.border import DIRECTORY, Border, Due, Files, Folder
from segproof_harness.laws.borders.log_files import BASE, batch, name, segment

LOG_NAME = name(BASE, ".log")
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
PLAIN = segment(batch(BASE))
TWO = segment(batch(BASE) + batch(BASE + 1))
OF_A_BROKER = {"../meta.properties": b"version=1\nnode.id=1\ncluster.id=c\n"}
ID = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
NO_EPOCHS = b"0\n0\n"
NOTE, WARNING = Severity.NOTE, Severity.WARNING
WAY = "0123456789abcdef" * 2


def _folders(bound: str, lawful: str, unlawful: str) -> Border:
    """Return the border between the names of two folders of a broker's directory."""
    files = [{**PLAIN, **OF_A_BROKER, f"../{one}": Folder()} for one in (lawful, unlawful)]
    due = Due(f"../{unlawful}", None, "TOPIC-NUMBER", unlawful)
    return Border("DISK-47", bound, files[0], files[1], due, below="..")


def _beside(file: str, content: bytes, *, is_here: bool) -> Files:
    """Return a partition and another one beside it; this one may have the file, the other has."""
    files = {**PLAIN, f"../t-1/{LOG_NAME}": b"", f"../t-1/{file}": content}
    return {**files, file: content} if is_here else files


def _ids(bound: str, folder: str, lawful: bytes, unlawful: bytes) -> Border:
    """Return the border at which the topic id of a folder beside a partition becomes unlawful."""
    here = {**PLAIN, **OF_A_BROKER, METADATA: ID, f"../{folder}/{LOG_NAME}": b""}
    files = [{**here, f"../{folder}/{METADATA}": one} for one in (lawful, unlawful)]
    due = [
        Due(file, None, None, one[-22:].decode("ascii"), WARNING)
        for file, one in ((METADATA, ID), (f"../{folder}/{METADATA}", unlawful))
    ]
    return Border(
        "DISK-50", bound, files[0], files[1], due, below="..",
        not_by_the_model="it is given the files of one partition",
    )  # fmt: skip


def _aside(
    bound: str, state: str, lawful: bytes, unlawful: bytes, used: bytes = batch(BASE),
    epochs: tuple[int, int] | None = None,
) -> Border:  # fmt: skip
    """Return the border at which a folder that is set aside has what its partition lacks.

    `epochs` are the offsets at which the leader epochs of the partition begin on both sides.
    """
    folder = f"../t-0.{WAY}-{state}"
    files = [
        {LOG_NAME: used, f"{folder}/{LOG_NAME}": one}
        | ({} if epochs is None else {EPOCHS: b"0\n1\n0 %d\n" % epochs[side]})
        for side, one in enumerate((lawful, unlawful))
    ]
    due = [
        Due("", None, None, f"{DIRECTORY}/{folder}", severity=WARNING),
        Due(folder, severity=WARNING),
    ]
    return Border(
        "DISK-41", bound, files[0], files[1], due, Due(folder, severity=NOTE), below="..",
        not_by_the_model="it is given the names inside of a partition only",
    )  # fmt: skip


BORDERS = (
    *(
        _aside(
            f"the -{state} folder ends with the last offset of its partition, or with the next",
            state, batch(BASE), batch(BASE) + batch(BASE + 1),
        )
        for state in ("stray", "future")
    ),
    _aside(
        "the batch in the -stray folder is before the begin of the partition, or its first one",
        "stray", batch(BASE - 1), batch(BASE), batch(BASE + 1, key=None), (BASE, BASE),
    ),
    Border(
        "DISK-3", "a folder in the partition has its last batch, or the next one",
        {**PLAIN, f"old/{LOG_NAME}": batch(BASE)},
        {**PLAIN, f"old/{name(BASE + 1, '.log')}": batch(BASE + 1)},
        Due("old", severity=WARNING), Due("old", severity=NOTE),
        not_by_the_model="it is given the names of files only",
    ),
    Border(
        "DISK-3", "a packed log in a folder has the name of the first offset, or of one before",
        {**TWO, f"old/{name(BASE, '.log.gz')}": b"x"},
        {**TWO, f"old/{name(BASE - 1, '.log.gz')}": b"x"},
        Due("old", severity=WARNING), Due("old", severity=NOTE),
        not_by_the_model="it is given the names of files only",
    ),
    Border(
        "DISK-3", "a packed log in a folder has the name of the last offset, or of the next one",
        {**TWO, f"old/{name(BASE + 1, '.log.gz')}": b"x"},
        {**TWO, f"old/{name(BASE + 2, '.log.gz')}": b"x"},
        Due("old", severity=WARNING), Due("old", severity=NOTE),
        not_by_the_model="it is given the names of files only",
    ),
    Border(
        "DISK-3", "a log lies in the folder of a partition, or beside it",
        {**PLAIN, f"../t-1/{LOG_NAME}": batch(BASE)}, {**PLAIN, f"../{LOG_NAME}": batch(BASE)},
        Due(f"../{LOG_NAME}"), below="..",
        not_by_the_model="it is given the names inside of a partition only",
    ),
    Border(
        "DISK-3", "a folder that Kafka takes for one to delete is in a copy, or in its directory",
        {**PLAIN, "../u-1.x-delete": Folder()},
        {**PLAIN, **OF_A_BROKER, "../u-1.x-delete": Folder()},
        Due("../u-1.x-delete", severity=WARNING), Due("../u-1.x-delete", severity=NOTE), below="..",
        not_by_the_model="it is given the names inside of a partition only",
    ),
    Border(
        "DISK-46", "the name of a segment has a letter of no layout, or that of Redpanda's",
        {**PLAIN, "0-1-w1.log": b""}, {**PLAIN, "0-1-v1.log": b""}, Due("", severity=WARNING),
    ),
    Border(
        "DISK-46", "the version of the name is missing, or 1",
        {**PLAIN, "0-1-v.log": b""}, {**PLAIN, "0-1-v1.log": b""}, Due("", severity=WARNING),
    ),
    _folders("the partition is a number, or a letter", "u-1", "u-x"),
    _folders("the partition is the largest of 32 bits, or one more", "u-2147483647",
             "u-2147483648"),
    _folders("the folder is the cache of remote indexes, or has a letter more",
             "remote-log-index-cache", "remote-log-index-caches"),
    _folders("a partition on its way has an id, or none", f"u-1.{WAY}-delete", "u-1-delete"),
    _folders("the topic has a letter, or none", "u-1", "-1"),
    Border(
        "DISK-49", "a partition has its id as the one beside it, or not",
        _beside(METADATA, ID, is_here=True), _beside(METADATA, ID, is_here=False),
        Due(METADATA, severity=WARNING),
        not_by_the_model="it is given the files of one partition",
    ),
    Border(
        "DISK-49", "a partition has its epochs as the one beside it, or not",
        _beside(EPOCHS, NO_EPOCHS, is_here=True), _beside(EPOCHS, NO_EPOCHS, is_here=False),
        Due(EPOCHS, severity=WARNING),
        not_by_the_model="it is given the files of one partition",
    ),
    Border(
        "DISK-49", "with a topic id and no epochs, its batches have no leader epoch, or epoch 0",
        {METADATA: ID, LOG_NAME: batch(BASE, partition_leader_epoch=-1)},
        {METADATA: ID, LOG_NAME: batch(BASE, partition_leader_epoch=0)},
        Due(EPOCHS, severity=WARNING),
        not_by_the_model="it is given the files of one partition",
    ),
    Border(
        "DISK-49", "a batch has a leader epoch, and nothing else is here, or a snapshot",
        {LOG_NAME: batch(BASE, partition_leader_epoch=0)},
        {
            LOG_NAME: batch(BASE, partition_leader_epoch=0),
            name(BASE + 1, ".snapshot"): write_snapshot(()),
        },
        Due(EPOCHS, severity=WARNING),
        not_by_the_model="it is given the files of one partition",
    ),
    Border(
        "DISK-49", "a copy of another topic has epochs, and the batches here have none, or one",
        {LOG_NAME: batch(BASE, partition_leader_epoch=-1), "../u-1/" + LOG_NAME: b"",
         "../u-1/" + EPOCHS: NO_EPOCHS},
        {LOG_NAME: batch(BASE, partition_leader_epoch=0), "../u-1/" + LOG_NAME: b"",
         "../u-1/" + EPOCHS: NO_EPOCHS},
        Due(EPOCHS, severity=WARNING),
        not_by_the_model="it is given the files of one partition",
    ),
    Border(
        "DISK-49", "a partition without an id is on its way here, or in use",
        {**PLAIN, METADATA: ID, f"../t-1.{WAY}-future/{LOG_NAME}": b""},
        {**PLAIN, METADATA: ID, f"../t-1/{LOG_NAME}": b""},
        Due(f"../t-1/{METADATA}", severity=WARNING), below="..",
        not_by_the_model="it is given the files of one partition",
    ),
    _ids("two partitions of a topic have one id, or two", "t-1", ID, ID[:-1] + b"g"),
    _ids("two topics have two ids, or one", "u-0", ID[:-1] + b"g", ID),
    Border(
        "DISK-48", "two folders are of partitions 0 and 1, or of 0 by both names",
        {**PLAIN, f"../t-01/{LOG_NAME}": b""}, {**PLAIN, f"../t-00/{LOG_NAME}": b""},
        [
            Due("", None, None, f"{DIRECTORY}/../t-00"),
            Due("../t-00", None, None, f"{DIRECTORY}/../t-0"),
        ], below="..",
    ),
)  # fmt: skip
