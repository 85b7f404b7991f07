# SPDX-License-Identifier: Apache-2.0
"""How to break a law of a RocketMQ store: for each that `verify` checks a small damage."""

import shutil
from functools import partial
from pathlib import Path

from segproof_harness.laws.borders.store_files import record
from segproof_harness.laws.file_damages import (
    Example,
    add,
    cut,
    flip,
    int32,
    int64,
    overwrite,
    remove,
    rename,
    together,
    write,
)

SMALL, ROLLED = "small-4.9.8", "rolled-4.9.8"
INDEX = "index/20261121011453849"
LOG = "commitlog/00000000000000000000"
QUEUE = "consumequeue/TopicTest/0/00000000000000000000"
OLDEST = "index/20261121011525806"
END = 1384
"""Length of the index file of the small store, which has 16 slots and 64 entries."""


def entry(index: int, field: int = 0) -> int:
    """Return where a field of an entry lies in the small store's index file."""
    return 40 + 4 * 16 + 20 * index + field


small = partial(Example, scenario=SMALL, system="rocketmq")
rolled = partial(Example, scenario=ROLLED, system="rocketmq")

OTHER_BYTES = len(record(0, 0))
_OTHER_FILE = b"".join(record(7 + at, 16384 + at * OTHER_BYTES) for at in range(3))
"""Three messages of a topic that the small store lacks."""


def _copy_beside(folder: Path) -> None:
    """Copy the store into a folder beside it."""
    shutil.copytree(folder, folder.parent / "copy")


STORE_EXAMPLES: dict[str, Example] = {
    # an index file
    "RMQDISK-1": small("the last 7 bytes of the file are cut off", cut(INDEX, 7)),
    "RMQDISK-2": small(
        "begin and end offset are those of no entry",
        overwrite(INDEX, 16, int64(77) + int64(78)),
    ),
    "RMQDISK-3": small("the file has a 13th month", rename(INDEX, "index/20261321011453849")),
    "RMQDISK-4": small(
        "the header counts more than there is room", overwrite(INDEX, 36, int32(65))
    ),
    "RMQDISK-5": small("the header is all zero", overwrite(INDEX, 0, bytes(40))),
    "RMQDISK-6": small("a byte far behind the last entry", overwrite(INDEX, entry(40), b"\1")),
    "RMQDISK-7": small("entry 0 is not zero", overwrite(INDEX, entry(0), b"\1")),
    "RMQDISK-8": small("a slot leads behind the last entry", overwrite(INDEX, 40, int32(50))),
    "RMQDISK-9": small("an entry leads to itself", overwrite(INDEX, entry(5, 16), int32(5))),
    "RMQDISK-10": small("one bit of a key hash is flipped", flip(INDEX, entry(5, 3))),
    "RMQDISK-11": small("a slot is empty that was in use", overwrite(INDEX, 40, int32(0))),
    "RMQDISK-12": small("the slot count is 99", overwrite(INDEX, 32, int32(99))),
    "RMQDISK-13": small("a time difference is -1", overwrite(INDEX, entry(5, 12), int32(-1))),
    "RMQDISK-14": small("a time difference is 100 s", overwrite(INDEX, entry(5, 12), int32(100))),
    "RMQDISK-15": small("an offset falls", overwrite(INDEX, entry(5, 4), int64(0))),
    "RMQDISK-16": small("the end offset is another one", overwrite(INDEX, 24, int64(9))),
    # index files beside each other
    "RMQDISK-17": rolled(
        "the oldest index file has the newest name",
        rename(OLDEST, "index/20991121011525806"),
    ),
    "RMQDISK-18": rolled("an index file has another length", add(OLDEST, bytes(20))),
    "RMQDISK-19": rolled("the oldest file counts fewer entries", overwrite(OLDEST, 36, int32(50))),
    "RMQDISK-33": rolled("the oldest index file is gone", remove(OLDEST)),
    # checkpoint, log and queues
    "RMQDISK-20": small("the checkpoint is cut", cut("checkpoint", 4000)),
    "RMQDISK-21": small(
        "the checkpoint speaks of the year 2100",
        overwrite("checkpoint", 16, int64(4102444800000)),
    ),
    "RMQDISK-22": small("the marker of a running broker is there", write("abort", b"")),
    "RMQDISK-23": small(
        "a second file of the commit log begins too far away",
        write("commitlog/00000000000000099999", bytes(16384)),
    ),
    "RMQDISK-24": small("the magic of a record is 0", overwrite(LOG, 298, int32(0))),
    "RMQDISK-25": small("a record says that it lies elsewhere", overwrite(LOG, 170, int64(7))),
    "RMQDISK-26": small("one bit of a body is flipped", flip(LOG, 142 + 88)),
    "RMQDISK-55": small(
        "a body has the length 0, and its checksum is left",
        overwrite(LOG, 142 + 84, int32(0) + b"\x09TopicTest\x00\x34KEYS\x01" + b"k" * 46 + b"\x02"),
    ),
    "RMQDISK-27": small("a byte behind the zeros at the log's end", overwrite(LOG, 10000, b"x")),
    "RMQDISK-28": small("the last record is zeros", overwrite(LOG, 1628, bytes(150))),
    "RMQDISK-29": small(
        "an entry leads one byte behind its message",
        overwrite(INDEX, entry(4, 4), int64(143)),
    ),
    "RMQDISK-30": small(
        "an entry has another hash of the same slot",
        overwrite(INDEX, entry(4), int32(1829193439)),
    ),
    "RMQDISK-31": small(
        "the entry of a key has another hash of the same slot",
        overwrite(INDEX, entry(4), int32(1829193439)),
    ),
    "RMQDISK-32": small(
        "the begin timestamp is one millisecond off",
        overwrite(INDEX, 0, int64(1795223693837)),
    ),
    "RMQDISK-34": small(
        "an entry has the hash of the message's other key",
        overwrite(INDEX, entry(1), int32(1829193424)),
    ),
    "RMQDISK-35": small("a unit of the queue has no size", overwrite(QUEUE, 68, int32(0))),
    "RMQDISK-36": small("a unit's offset falls", overwrite(QUEUE, 60, int64(0))),
    "RMQDISK-37": small(
        "a unit leads one byte behind its record", overwrite(QUEUE, 60, int64(454))
    ),
    "RMQDISK-38": small("a file of notes lies among the index files", write("index/notes", b"x")),
    "RMQDISK-39": small("a file of notes lies in the log's folder", write("commitlog/notes", b"x")),
    "RMQDISK-52": small("the last four records are zeros", overwrite(LOG, 1188, bytes(600))),
    "RMQDISK-53": small(
        "the checkpoint says that the log had a message of the year 2100",
        overwrite("checkpoint", 0, int64(4102444800000)),
    ),
    "RMQDISK-54": small(
        "a consumer group is at offset 999999 of a queue",
        write("config/consumerOffset.json", b'{"offsetTable":{"TopicTest@g":{0:999999}}}'),
    ),
    "RMQDISK-51": small(
        "a salvage guessed the slots of the index", write("segproof-index.guessed", b"")
    ),
    "RMQDISK-50": small("a unit has the tags code 12345", overwrite(QUEUE, 72, int64(12345))),
    "RMQDISK-41": small("a file of notes lies in the store", write("notes", b"x")),
    "RMQDISK-42": small(
        "the log lies in a folder of DLedger, and its own folder has an empty file",
        together(
            write("dledger-n0/data/00000000000000000000", int32(1) + int32(256) + bytes(16376)),
            overwrite(LOG, 0, bytes(8)),
        ),
    ),
    "RMQDISK-43": small("a file of topics is zeros", write("config/topics.json", bytes(60))),
    "RMQDISK-44": small(
        "each entry of the index leads to another place",
        together(*(overwrite(INDEX, entry(index, 4), int64(3 * index)) for index in range(1, 25))),
    ),
    "RMQDISK-45": small(
        "a timer leads beyond the log",
        write(
            "timerlog/00000000000000000000",
            (int32(52) + int64(-1) + int32(0) + int64(1795223725000) + int32(60000) + int64(999999))
            + (int32(200) + bytes(12) + bytes(52 * 99)),
        ),
    ),
    "RMQDISK-56": small(
        "a file of the log of another store lies after the last one",
        write("commitlog/00000000000000016384", _OTHER_FILE.ljust(16384, b"\0")),
    ),
    "RMQDISK-57": small(
        "a file of topics is whole, and has no topic",
        write("config/topics.json", b'{"topicConfigTable":{}}'),
    ),
    "RMQDISK-58": small("a copy of the store lies beside it", _copy_beside, below=".."),
    "RMQDISK-40": small("a store time is of the year 2001", overwrite(LOG, 198, int64(10**12))),
}
"""An example for each law of a store that a small damage can break."""
