# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's message store, described for the harness: loading and recovering, as one opening.

What a store lacks after a stop is drawn, not made by stopping one: queues that end before the log
does, an index that lacks messages, the marker of a running store, an old checkpoint.
Mirrors: segproof_model/rocketmq/broker/message_store.py, segproof/rocketmq/message_store.py.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC
from functools import partial
from typing import Any

from segproof.errors import IndexClosedError
from segproof.rocketmq.message import Message
from segproof.rocketmq.message_store import MessageStoreConfig as ImplConfig
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, message_of
from segproof_harness.structures.choices import INT64_MAX, Choose
from segproof_harness.structures.kinds import (
    BYTES,
    FLAG,
    INT32,
    INT64,
    PATH,
    SIZE_MAX,
    TIME_MS,
    Record,
    Row,
)
from segproof_harness.structures.operations import Value
from segproof_harness.structures.rocketmq import message_drawing as draw
from segproof_harness.structures.rocketmq.index_drawing import NOW_MS, TEXT
from segproof_harness.structures.steps import Event, Setup, Situation, States
from segproof_harness.structures.structure import Parameter, Structure, creating, operation
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import int64_bytes
from segproof_model.language.outcomes import ErrorKind, Step
from segproof_model.language.states import opened, refuse
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.broker.message_store import ABORT, MessageStore, MessageStoreConfig
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.consume_queue import CONSUME_QUEUE, ConsumeQueue

TOPIC = "T"
OPTIONS = ("message_index_enable", "message_index_safe")
SLOTS, ENTRIES = 4, 200
"""So many entries that no index file is ever full."""
LOG_FILE_SIZE, QUEUE_FILE_SIZE = 256, 100
"""Two messages in a file of the log, five in one of a queue."""
STRAY = "index/5/x"
"""A folder among the index files: these can't be loaded."""

BORN_HOST = 48
"""Where the hosts of the first message of a file begin."""
Images = dict[str, bytes]


# --- a store that was stopped --------------------------------------------------------------------


def _some_messages(choose: Choose) -> list[Message]:
    """Draw messages of two keys, each stored 10 s after the one before; seldom one at no time."""
    count = choose.one_of((3, 5, 8, 30))
    timeless = choose.integer(0, count - 1) if choose.one_in(6) else -1
    return [
        message_of(
            TOPIC, {"KEYS": f"k{number} m{number % 3}"}, queue_offset=number,
            store_timestamp=0 if number == timeless else _time_of(number),
        )
        for number in range(count)
    ]  # fmt: skip


def _time_of(number: int) -> int:
    return FIRST_TIMESTAMP_MS + 10_000 * number


def _written(images: Images) -> list[Any]:
    log = SEGPROOF.kind(CommitLog)(Files(images), "", LOG_FILE_SIZE)
    return [result.message for _, result in log.scan() if result.message is not None]


def _queue_files(messages: Sequence[Any], number: int) -> Images:
    folder = f"{CONSUME_QUEUE}/{TOPIC}/{number}"
    queue = SEGPROOF.kind(ConsumeQueue)(Files(), folder, QUEUE_FILE_SIZE)
    for one in messages:
        place = one.physical_offset, one.total_size
        queue.put_message_position_info(*place, 0, one.queue_offset)
    return dict(queue.files.images)


def _index_files(messages: Sequence[Any]) -> Images:
    files = Files(now_ms=NOW_MS - 10**6)
    service = SEGPROOF.kind(IndexService)(files, "", SLOTS, ENTRIES)
    for one in messages:
        service.build_index(one.dispatch_request())
    if messages:
        service.flush(0)
    return {name: data for name, data in files.images.items() if name.startswith("index/")}


def _some_checkpoint(choose: Choose, messages: Sequence[Any]) -> bytes:
    """Draw a checkpoint: three times and three offsets, each of some message or 0."""
    times = [0, *(one.store_timestamp for one in messages), INT64_MAX // 2]
    places = [0, 0, *(one.physical_offset for one in messages)]
    values = [choose.one_of(times) for _ in range(3)] + [0, 0, choose.one_of(places)]
    return b"".join(map(int64_bytes, values)).ljust(4096, b"\0")


def _some_store(choose: Choose) -> Images:
    """Draw the files of a stopped store."""
    files = draw.log_files(_some_messages(choose), LOG_FILE_SIZE, 0)
    messages = _written(files)
    count = len(messages)
    if choose.one_in(5):
        files[f"{draw.FOLDER}{LOG_FILE_SIZE * len(files):020d}"] = b""
    for number in range(choose.one_of((1, 2))):
        reached = choose.one_of((0, 1, count - 1, count, count // 2))
        files |= _queue_files(messages[:reached], number)
    files |= _index_files(messages[: choose.one_of((0, 0, 1, count - 1, count))])
    files = _with_another_log(choose, files)
    if choose.one_in(8):
        files[STRAY] = b""
    if not choose.one_in(4):
        files["checkpoint"] = _some_checkpoint(choose, messages)
    if choose.one_in(2):
        files[ABORT] = b""
    return files


def _with_another_log(choose: Choose, files: Images) -> Images:
    """Draw what queues and index do not know of the log: its oldest files are gone, or one byte is
    another one, or a file has another length; mostly nothing.

    Ports of hosts are left alone: the first of the messages that are found needs possible ones.
    """
    names = sorted(name for name in files if name.startswith(draw.FOLDER) and files[name])
    kind = choose.weighted((6, 5, 2, 1))
    if kind == 1:
        gone = names[: choose.integer(0, len(names) - 1)]
        return {name: data for name, data in files.items() if name not in gone}
    if kind == 0:
        return files
    name, changed = choose.one_of(names), choose.integer(0, LOG_FILE_SIZE - 1)
    data = files[name]
    if kind == 2:
        changed %= BORN_HOST
        data = data[:changed] + bytes([data[changed] ^ 1]) + data[changed + 1 :]
    else:
        data = choose.one_of((data[:-1], data[:changed], data + b"\0"))
    return files | {name: data}


# --- opening -------------------------------------------------------------------------------------


def _draw_setup(choose: Choose) -> Setup:
    arguments: dict[str, Value] = {
        "now_ms": NOW_MS,
        "files": (),
        "message_index_enable": not choose.one_in(8),
        "message_index_safe": choose.boolean(),
    }
    return Setup(arguments, _some_store(choose))


def _some_files(choose: Choose, situation: Situation) -> Value:
    """Draw what a store is replaced by before it is opened again; mostly it stays as it is."""
    kind = choose.weighted((2, 5))
    return () if kind == 0 else tuple(sorted(_some_store(choose).items()))


def _replaced(arguments: Mapping[str, Any], images: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files of the other store; a folder in the index stays, as folders do."""
    stray = {name: data for name, data in images.items() if name == STRAY}
    return dict(arguments["files"]) | stray if arguments["files"] else images


def _next_time(choose: Choose, situation: Situation) -> Value:
    before: Any = situation.opened["now_ms"]
    return int(before) + 1000


def _loaded(files: Files, release: Release, **options: bool) -> MessageStore:
    """Open, load and recover; a store that cannot be loaded is not open."""
    config = MessageStoreConfig(SLOTS, ENTRIES, LOG_FILE_SIZE, **options)
    store = release.kind(MessageStore)(files, "", config)
    return store if store.load_and_recover() else refuse(ErrorKind.UNMAPPED)


def _options(arguments: Mapping[str, Any]) -> dict[str, bool]:
    return {name: arguments[name] for name in OPTIONS}


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(_loaded, files, release, **_options(arguments))


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    config = ImplConfig(SLOTS, ENTRIES, LOG_FILE_SIZE, **_options(arguments))
    clock = arguments["clock"]
    opening = partial(impl_class.open, arguments["directory"], config, **creating(impl_class.open))
    store = opening(files=files, time=clock, zone=UTC)
    if hasattr(store, "load"):  # a real store is loaded by its adapter
        if not store.load():
            raise IndexClosedError("the store could not be loaded")
        store.recover()
    return store


# --- calls ---------------------------------------------------------------------------------------


def _query_of_model(store: MessageStore, key: str, max_num: int) -> Any:
    return store.index_service.query_offset(TOPIC, key, max_num, 0, INT64_MAX).phy_offsets


def _query_of_impl(store: Any, key: str, max_num: int) -> Any:
    asked = getattr(store, "index_service", store)
    found = asked.query_offset(TOPIC, key, max_num, 0, INT64_MAX)
    return tuple(getattr(found, "phy_offsets", found))


def _show_messages(found: Any) -> Any:
    """Return where the messages lie, and the two numbers of the index."""
    messages, *update = found
    return tuple(getattr(one, "physical_offset", one) for one in messages), *update


def _some_key(choose: Choose, situation: Situation) -> str:
    """Draw the key of one message, or one of every third."""
    return f"k{choose.integer(0, 9)}" if choose.boolean() else f"m{choose.integer(0, 2)}"


def _some_bound(border: int) -> Any:
    """Return how a bound of times is drawn: one beside the time of a message, or none."""

    def drawn(choose: Choose, situation: Situation) -> int:
        time = choose.beside(_time_of(choose.integer(0, 9)))
        return border if choose.boolean() else time

    return drawn


def _entries(state: Any) -> int:
    return sum(file.index_count - 1 for file in state.index_service.index_files)


def _is_asked(event: Event) -> bool:
    """Return whether a release is asked: not where a life makes two index files.

    Nor for messages at or beyond the first damage, where the release has cut its log.
    """
    if event.does("query_message") and event.outcome.error is None:
        messages, _, _ = event.outcome.value
        # A scan yields the failure too: where it lies the release has no message any more.
        read = (at for at, result in event.before.commit_log.scan() if result.success)
        end = max(read, default=-1)
        return all(offset <= end for offset in messages)
    if event.after is None:
        return True
    names = [file.file_name for file in event.after.index_service.index_files]
    return len(set(names)) == len(names)


def _opens(event: Event) -> bool:
    return event.does("open", "reopen", "crash_reopen") and event.after is not None


SOMETIMES: States = {
    "not-loaded": lambda event: event.outcome.error == "unmapped",
    "clean-exit": lambda event: _opens(event) and event.after.last_exit_ok,
    "killed": lambda event: _opens(event) and not event.after.last_exit_ok,
    "has-entries": lambda event: _opens(event) and _entries(event.after) > 0,
    "has-no-entries": lambda event: _opens(event) and _entries(event.after) == 0,
    "found": lambda event: event.does("query") and bool(event.outcome.value),
    "found-but-gone": lambda event: (
        event.done("query_message") and not event.outcome.value[0] and event.outcome.value[1] > 0
    ),
    "index-is-off": lambda event: (
        _opens(event) and not event.argument("message_index_enable") and _entries(event.after) == 0
    ),
    "begins-behind-offset-0": lambda event: _opens(event) and event.after.commit_log.min_offset > 0,
    "empty-last-file": lambda event: (
        _opens(event)
        and any(
            not data
            for name, data in event.after.files.images.items()
            if name.startswith(draw.FOLDER)
        )
    ),
}
"""States of a store, by name."""


# --- the table -----------------------------------------------------------------------------------

MAX_NUM = Parameter("max_num", INT32, lambda choose, _: choose.one_of((8, 1, 64)))

OPERATIONS = (
    operation(
        "query",
        15,
        "RMQLOG-5 RMQSVC-17",
        Parameter("key", TEXT, _some_key),
        MAX_NUM,
        call_model=_query_of_model,
        call_impl=_query_of_impl,
    ),
    operation(
        "query_message",
        25,
        "RMQLOG-5 RMQSVC-17",
        Parameter("topic", TEXT, lambda choose, _: TOPIC),
        Parameter("key", TEXT, _some_key),
        MAX_NUM,
        Parameter("begin", INT64, _some_bound(0)),
        Parameter("end", INT64, _some_bound(INT64_MAX)),
        show=_show_messages,
    ),
    operation("close", 1, "", call=lambda store: None),
)

MESSAGE_STORE = Structure(
    structure_id="message-store",
    model="segproof_model.rocketmq.broker.message_store:MessageStore",
    opening=(
        Parameter("now_ms", TIME_MS, _next_time),
        Parameter("files", Row(Record(name=PATH, data=BYTES), SIZE_MAX), _some_files),
        Parameter("message_index_enable", FLAG, lambda choose, _: not choose.one_in(8)),
        Parameter("message_index_safe", FLAG, lambda choose, _: choose.boolean()),
    ),
    draw_setup=_draw_setup,
    operations=OPERATIONS,
    sometimes=SOMETIMES,
    open_model=_open_model,
    open_impl=_open_impl,
    takes_directory=True,
    takes_clock=True,
    takes_folders=True,
    damage=_replaced,
    laws=("RMQLOG-5", "RMQSVC-2", "RMQSVC-4", "RMQCKPT-5"),
    is_asked=_is_asked,
)
