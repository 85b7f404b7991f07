# SPDX-License-Identifier: Apache-2.0
"""What no history of the harness asks: both models of a store side by side, each call by itself.

    python -m segproof_harness.plain.store_calls [--seeds 200] [--first 0] [--release NAME ...]

Stores of odd records, lengths and options; loading, recovering, queries for messages; an index that
is made anew; lookups by time of lost messages; records read and written; logs whose size of files
nobody says.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from segproof_harness.descriptions import log_messages as draw
from segproof_harness.descriptions.message_store import SLOTS, _some_store
from segproof_harness.generation import INT64_MAX, Choose, RandomChoose, one_in
from segproof_harness.memory_stores import FIRST_TIMESTAMP_MS
from segproof_harness.outcomes import of_model
from segproof_harness.plain import message_store
from segproof_model.directory import Directory
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import apply, opened, outcome_of
from segproof_model.profiles import Profile, profile_named
from segproof_model.releases import RELEASES
from segproof_model.rocketmq import commit_log as old_log
from segproof_model.rocketmq import consume_queue as old_queue
from segproof_model.rocketmq import message as old_message
from segproof_model.rocketmq import message_store as old_store
from segproof_model.rocketmq.broker import message_store as plain_store
from segproof_model.rocketmq.format import commit_log as plain_log
from segproof_model.rocketmq.format import consume_queue as plain_queue
from segproof_model.rocketmq.format import message as plain_message
from segproof_model.rocketmq.format.consume_queue_releases import NearestUnitIsFound
from segproof_model.rocketmq.format.dispatch_request import DispatchRequest

REST = (None, 0, 0, None)
"""Of a request: no unique key, no flag, no transaction, no properties."""
NOW_MS = 1_800_000_000_000
LENGTHS = (256, 256, 256, 400)
QUERIES = ("T", "T", "T", "Topic-2", None), ("k0", "k1", "k5", "TagA", None)


class Found(NamedTuple):
    """What one call came to on both models."""

    what: str
    expected: Any
    actual: Any


def directory_of(files: dict[str, bytes]) -> Directory:
    """Return files as the older model has them."""
    return Directory(tuple(sorted(files.items())))


def some_files(choose: Choose, path: str) -> dict[str, bytes]:
    """Draw the files of a store below a path: an orderly one, or one of odd records."""
    files = _some_store(choose)
    if one_in(choose, 3):
        files = {name: data for name, data in files.items() if not name.startswith(draw.FOLDER)}
        files |= draw.log_files(records_of(choose), 256, choose.one_of((0, 256, 2560)))
    if one_in(choose, 3):
        files = draw.with_damage(draw.some_damage(choose, directory_of(files)), files)  # type: ignore[arg-type]
    if one_in(choose, 8):
        name = choose.one_of(sorted(files))
        files[name] = files[name][: -choose.integer(1, 30)] + bytes(choose.one_of((0, 0, 60)))
    for number in range(choose.one_of((0, 0, 0, 0, 1, 2))):
        units = [(choose.one_of((0, 256, 512)), choose.one_of((100, 100, 0))) for _ in range(2)]
        data = b"".join(map(unit_bytes, units)) + bytes(choose.one_of((0, 0, 5)))
        files[f"consumequeue/U/7/{40 * number:020d}"] = data if not one_in(choose, 8) else b""
    return {f"{path}/{name}" if path else name: data for name, data in files.items()}


def records_of(choose: Choose) -> list[Any]:
    """Draw messages; the store time of some is 0."""
    drawn = draw.some_messages(choose)
    return [replaced(one, store_timestamp=0) if one_in(choose, 4) else one for one in drawn]


def replaced(message: Any, **values: Any) -> Any:
    """Return a message with other values."""
    names = type(message).__slots__
    return type(message)(**{name: values.get(name, getattr(message, name)) for name in names})


def unit_bytes(place: tuple[int, int]) -> bytes:
    """Return a unit of a queue."""
    return old_queue.ConsumeQueueUnit(*place, 0).to_bytes()


def some_calls(choose: Choose) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Draw calls of a store."""
    for _ in range(choose.integer(2, 6)):
        name = choose.one_of(("load", "recover", "load_and_recover", "query_message"))
        if name != "query_message":
            yield name, ()
        if one_in(choose, 3):
            place, keys = choose.one_of((0, 256, 10**6)), choose.one_of(("k0", "k1 k5"))
            time = FIRST_TIMESTAMP_MS + choose.one_of((0, 30_000))
            yield "do_dispatch", (DispatchRequest("T", place, 100, 0, time, 0, keys, *REST),)
        topic, key = choose.one_of(QUERIES[0]), choose.one_of(QUERIES[1])
        begin = choose.one_of((0, FIRST_TIMESTAMP_MS + 20_000))
        yield "query_message", (topic, key, choose.one_of((1, 3, 64, -1)), begin, INT64_MAX)


def stores(choose: Choose, release: Release, profile: Profile) -> Iterator[Found]:
    """Open a store on both, and yield what each call comes to."""
    path = choose.one_of(("", "", "store", "a/b"))
    files = some_files(choose, path)
    directory = directory_of(files)
    options = (
        SLOTS,
        choose.one_of((200, 200, 6)),
        choose.one_of((*LENGTHS, 0)) if one_in(choose, 6) else 256,
        not one_in(choose, 8),
        one_in(choose, 3),
        choose.one_of((64, 2)),
    )
    config = old_store.MessageStoreConfig(*options)
    step: Any = old_store.MessageStore.open(
        path, config, directory=directory, profile=profile, now_ms=NOW_MS
    )
    plain: Any = opened(
        release.kind(plain_store.MessageStore),
        Files(files, NOW_MS),
        path,
        plain_store.MessageStoreConfig(*options),
    )
    yield Found("open", of_model(step.outcome), of_model(plain.outcome))
    if isinstance(step.outcome, Raised):
        return
    yield from rebuilt(step.after, plain.after)
    furthest = old_store.max_physic_offset(path, directory, profile)
    yield Found("reached", furthest, plain.after.max_physic_offset())
    for name, arguments in some_calls(choose):
        step = getattr(step.after, name)(*arguments)
        plain = apply(plain.after, name, *arguments)
        yield Found(f"{name} {arguments}", of_model(step.outcome), of_model(plain.outcome))
        yield Found("files", dict(step.after.directory.files), plain.after.files.images)
        held = message_store.seen_of_old(step.after), message_store.seen(plain.after)
        yield Found(f"after {name}", *held)


def queues(choose: Choose, release: Release, profile: Profile) -> Iterator[Found]:
    """Look times up in a queue whose messages the log has in part."""
    begin = choose.one_of((0, 256, 512))
    files = draw.log_files(records_of(choose), 256, begin)
    logs: Any = old_log.CommitLog.open(
        "", 256, directory=directory_of(files), profile=profile
    ).after
    known = [(at, result.size) for at, result in logs.scan() if result.size > 0]
    queue: Any = old_queue.ConsumeQueue.open("", "T", 0, 60, profile=profile).after
    first = choose.one_of((0, 0, 4, 10))
    for number in range(choose.integer(1, 9)):
        lost = choose.integer(0, 300), 100
        place = choose.one_of(known) if known and not one_in(choose, 4) else lost
        queue = queue.put_message_position_info(*place, 0, first + number).after
    files |= dict(queue.directory.files)
    directory = directory_of(files)
    queue = old_queue.ConsumeQueue.open("", "T", 0, 60, directory=directory, profile=profile).after
    other = release.kind(plain_queue.ConsumeQueue)(Files(files), "consumequeue/T/0", 60)
    log = release.kind(plain_log.CommitLog)(other.files, "", 256)
    if one_in(choose, 2):
        queue = replace(queue, min_logic_offset=20 * first)
        other.min_logic_offset = 20 * first
    held = [(one.end, one.max_physic_offset, one.units()) for one in (queue, other)]
    yield Found("queue", *map(of_model, held))
    for _ in range(12):
        modified = {start: choose.one_of((0, FIRST_TIMESTAMP_MS)) for start in queue.starts()}
        time = choose.one_of((-2, -1, 0, 1, FIRST_TIMESTAMP_MS, FIRST_TIMESTAMP_MS + 1000, 2**50))
        rule: Any = choose.one_of(("lower", "upper"))
        named = {"modified_ms": modified} if release.has(NearestUnitIsFound) else {}
        expected = queue.get_offset_in_queue_by_time(time, logs, rule, modified_ms=modified)
        actual = other.get_offset_in_queue_by_time(time, log, rule, **named)
        yield Found(f"lookup {time} {rule}", expected, actual)


def rebuilt(old: Any, plain: Any) -> Iterator[Found]:
    """Make the index anew on both, and a log whose size of files nobody says."""
    directory, profile = old.directory, old.profile
    size = {"directory": directory, "profile": profile}
    logs: Any = old_log.CommitLog.open(old.store_path, **size).after
    log = plain.kind(plain_log.CommitLog)(plain.files, plain.store_path)
    yield Found("size", logs.mapped_file_size, log.mapped_file_size)
    scanned = [of_model(list(one.scan())) for one in (logs, log)]
    yield Found("scan", *scanned)
    step: Any = old_store.rebuild_index(old.store_path, SLOTS, 7, now_ms=NOW_MS, **size)
    other: Any = opened(
        plain_store.rebuild_index, Files({}, NOW_MS), log, plain.store_path, SLOTS, 7
    )
    yield Found("rebuilt", of_model(step.outcome), of_model(other.outcome))
    files = other.after.files if hasattr(other.after, "files") else other.after
    yield Found("rebuilt files", dict(step.after.directory.files), files.images)


def records(choose: Choose, release: Release, profile: Profile) -> Iterator[Found]:
    """Write records on both, and read them, whole and damaged."""
    kind = release.kind(plain_message.Message)
    for one in draw.some_messages(choose):
        values = {name: getattr(one, name) for name in type(one).__slots__}
        if one_in(choose, 6):
            values["topic"] = "t" * choose.one_of((127, 128, 300))
        if one_in(choose, 6):
            values["born_host"] = bytes(choose.one_of((8, 20)))
        message = old_message.Message(**values)
        if profile.rmq_hosts_v6 or not message.sys_flag & 0x30:
            written = old_message.encode_message(message)
            yield Found("written", written, outcome_of(kind(**values).to_bytes))
        data = old_message.encode_message(message)
        if isinstance(data, Raised):
            continue
        for _ in range(8):
            at = choose.integer(0, min(len(data) - 1, choose.one_of((8, 100, 400))))
            changed = data[:at] + choose.data(choose.one_of((1, 1, 2, 4))) + data[at + 1 :]
            changed = changed[: choose.one_of((len(data), len(data), len(data) + 4, at))]
            where, crc = choose.one_of((0, 0, 0, 4)), choose.boolean()
            given = changed + bytes(choose.one_of((0, 40))), where, crc
            expected = old_message.check_message_and_return_size(*given, profile=profile)
            actual = kind.check_message_and_return_size(*given)
            yield Found(f"read {given}", of_model(expected), of_model(actual))
            if expected.message is not None and actual.message is not None:
                request = old_message.dispatch_request_of(expected.message, profile=profile)
                yield Found("request", tuple(request), tuple(actual.message.dispatch_request()))
    for remaining in (0, 7, 8, 9):
        found = outcome_of(plain_message.blank_tail, remaining)
        yield Found("blank", old_message.blank_tail(remaining), found)


def compared(
    release: Release, profile: Profile, seed: int, kinds: Any = None
) -> tuple[int, Found | None]:
    """Return how many calls of one seed are the same, and the first that is not."""
    count = 0
    for kind in kinds or (stores, queues, records):
        call: Callable[..., Iterator[Found]] = kind
        for found in call(RandomChoose(call.__name__, seed), release, profile):
            count += 1
            if found.expected != found.actual:
                return count, found
    return count, None


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--release", nargs="*")
    given = parser.parse_args()
    known = [name for name in RELEASES if not name.startswith("kafka")]
    total = bad = 0
    for name in given.release or known:
        profile = profile_named(name)
        calls = differences = 0
        for seed in range(given.first, given.first + given.seeds):
            count, found = compared(RELEASES[name], profile, seed)
            calls += count
            if found is not None:
                differences += 1
                if differences == 1:
                    print(f"  seed {seed}: {found.what:.200}\n    old   {found.expected!r:.700}")
                    print(f"    plain {found.actual!r:.700}")
        print(f"{name}: {calls} calls, {differences} differences", flush=True)
        total, bad = total + calls, bad + differences
    print(f"{total} calls, {bad} differences")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
