# SPDX-License-Identifier: Apache-2.0
"""The row about rebuilding a RocketMQ index from the commit log, beside RocketMQ itself.

The log is written by RocketMQ's own store. Both sides read and check each record of it, enter its
keys into a new index of the default size, and make that durable; their bytes are compared.
"""

import shutil
from collections.abc import Callable

from benchmarks.contestants import ROCKETMQ, Contestant, NotRunError, Passes, ours
from benchmarks.measuring import Bench, race, rate, say
from benchmarks.table import Cell, Goal, NotRun, Row, Section
from segproof.files import REAL_FILES
from segproof.rocketmq.message import Message
from segproof_harness.files.memory_stores import message_of, write_log

MESSAGES, QUICK_MESSAGES = 200_000, 20_000
LOG_FILE_BYTES = 64 << 20
BODY_BYTES = 200
_REBUILD_PROGRAM = 1
_THOUSANDS = 1e3


def sections(bench: Bench) -> list[Section]:
    """Measure `segproof rebuild` of a RocketMQ store."""
    count = QUICK_MESSAGES if bench.quick else MESSAGES
    say("RocketMQ, rebuild of the index")
    store = bench.folder / "store"
    try:
        bench.java.run(ROCKETMQ, _REBUILD_PROGRAM, "write", store, count)
    except NotRunError:
        write_log(REAL_FILES, str(store), map(_message, range(count)), LOG_FILE_BYTES)
    results = _results(bench, store)
    cells: dict[str, Cell] = {
        name: rate(result, count, _THOUSANDS) for name, result in results.items()
    }
    section = Section(
        "RocketMQ: rebuild of the index",
        f"{count} messages of {BODY_BYTES} bytes with a unique key, two keys and tags, in log files"
        f" of {LOG_FILE_BYTES >> 20} MiB; page cache warm. Thousands of messages a second, read, "
        "checked, and entered into a new file of the default size, which is made durable; segproof "
        "also renames it. RocketMQ: `checkMessageAndReturnSize` and `buildIndex` for each record, "
        "as its recovery does, then `flush`. Same bytes in the index.",
        "RocketMQ 5.5.1",
        [Row.of("rebuild", "k/s", cells, Goal(1, is_ratio=True), True)],
    )
    shutil.rmtree(store)
    return [section]


def _results(bench: Bench, store: object) -> dict[str, Passes | NotRun]:
    def start(kernels: str, warmups: int) -> Callable[[], Contestant]:
        out = bench.folder / f"rebuilt-{kernels}"
        return lambda: ours(kernels, "rocketmq-rebuild", warmups, store, out, LOG_FILE_BYTES)

    def theirs() -> Contestant:
        out = bench.folder / "rebuilt-theirs"
        return bench.java.contestant(
            "rebuild", 3, store, out, profile=ROCKETMQ, program=_REBUILD_PROGRAM
        )

    wait = not bench.quick
    fast = race({"theirs": theirs, "compiled": start("compiled", 2)}, bench.passes, wait=wait)
    slow = race({"interpreted": start("interpreted", 0)}, 1, wait=False)
    return {**fast, **slow}


def _message(number: int) -> Message:
    keys = {"UNIQ_KEY": f"{number:032X}", "KEYS": f"order-{number} user-{number % 5000}"}
    return message_of("TopicTest", {**keys, "TAGS": f"Tag{number % 7}"}, body=bytes(BODY_BYTES))
