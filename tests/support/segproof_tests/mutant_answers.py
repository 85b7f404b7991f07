# SPDX-License-Identifier: Apache-2.0
"""What lookups answer on a mutant in which `verify` finds no defect.

Each answer must be the one that the mutant's own log gives when it is read from its start, without
an index. And where that log differs from the healthy one, each difference must be one of
`UNPROTECTED`: what the files of a log can't tell. So no damage to an index has an excuse, and none
to a log but those that are listed.
"""

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict
from difflib import SequenceMatcher
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

from segproof.errors import SegproofError
from segproof.lookup import PartitionReader
from segproof.reading.record_keys import keys_of, tag_key_of
from segproof.reading.store_reader import NO_INDEX
from segproof.rocketmq.message import dispatch_request_of
from segproof.store_lookup import StoreReader
from segproof_tests.mutant_damages import old_times

__all__ = [
    "UNPROTECTED",
    "WITHOUT_CHECKSUM",
    "Question",
    "answers",
    "differences",
    "has_records_of",
    "holds_nothing",
    "is_store",
    "wrong_answers",
]

PREPARED, TRANSACTION_BITS = 4, 12
ASKED = 24
"""So many lookups of each kind are asked."""

WITHOUT_CHECKSUM = (
    "flag", "sys_flag", "born_timestamp", "born_host", "store_host", "reconsume_times",
    "prepared_transaction_offset",
)  # fmt: skip
"""Fields of a record of RocketMQ that no checksum holds, and no other file repeats."""
UNPROTECTED = {
    "front": "whole segments or files are gone from the front: retention removes them so",
    "end": "batches or records are gone from the end: they may never have been written",
    "gap": "batches are gone from between others: compaction removes them so",
    "sound": "a batch or record is there whose checksum is right: a writer may have written it",
    "base_offset": "of a batch, inside the gap between its neighbours: no checksum holds it",
    "leader_epoch": "of a batch: no checksum holds it",
    "segment": "a segment begins at another offset before its first batch: compaction does so",
    "partition": "a whole partition is gone from a data directory: it may have been moved away",
    "store_timestamp": "of a record, inside the whole seconds that the index holds of those with"
    " keys: it has no checksum",
    "properties": "of a record, but for keys and tags: they have no checksum",
    **dict.fromkeys(
        WITHOUT_CHECKSUM, "of a record: it has no checksum, and no other file repeats it"
    ),
}
"""Each kind of difference between two logs that nothing in the files tells, and why; the page
`docs/explanation/fault-model.md` lists them with their bytes."""

Question = tuple[str, ...]


class Part(NamedTuple):
    """One batch or record of a log."""

    file: str
    protected: bytes
    """What its checksum holds."""
    fields: dict[str, Any]
    """The rest, by name."""
    is_sound: bool = True
    """Whether its checksum is right."""


def is_store(path: Path) -> bool:
    """Return whether a directory is a store of RocketMQ: it has its folders, and no segments."""
    has_folders = (path / "commitlog").is_dir() or (path / "index").is_dir()
    return has_folders and not any(path.glob(f"{20 * '[0-9]'}.log"))


def wrong_answers(
    source: Path, folder: Path, scratch: Path, *, is_index_missed: bool = False
) -> Iterator[str]:
    """Tell of answers of a mutant that are not those of its own log.

    `is_index_missed`: `verify` says that the store has no index, so an answer may say so too.
    """
    healthy = dict(answers(source))
    found = _asked(folder, list(healthy))
    by_log = dict(_by_log(folder, list(healthy), scratch))
    for question, answer in found:
        if answer == NO_INDEX and is_index_missed:
            continue
        if answer != by_log[question] or (_is_error(answer) and answer != healthy[question]):
            yield f"lookup {' '.join(question)} answers {answer}, and the log {by_log[question]}"
            return


def differences(source: Path, folder: Path) -> set[str]:
    """Return in which ways the log of a mutant differs from the healthy one."""
    old, new = _log(source), list(_parts(folder))
    found: set[str] = set()
    known = {part.protected for part in old}
    one, other = ([part.protected for part in parts] for parts in (old, new))
    for kind, begin, end, first, last in SequenceMatcher(None, one, other, False).get_opcodes():
        if kind == "equal":
            for was, now in zip(old[begin:end], new[first:last], strict=True):
                found |= {name for name in was.fields if was.fields[name] != now.fields[name]}
            continue
        if end - begin > last - first:
            found.add(_loss(old, begin, end))
        for part in new[first:last]:
            sound = "sound" if part.is_sound else "damaged"
            found.add("moved" if part.protected in known else sound)
    return found


def has_records_of(store: Path, others: Sequence[Path]) -> bool:
    """Return whether each record of a store lies, byte for byte, in the log of another one."""
    with ExitStack() as stack:
        logs = [
            stack.enter_context(closing(mmap(file.fileno(), 0, access=ACCESS_READ)))
            for other in others
            for path in (other / "commitlog").iterdir()
            if path.is_file() and path.stat().st_size
            for file in [stack.enter_context(path.open("rb"))]
        ]
        log = StoreReader(store).log
        for offset, result in log.scan() if log is not None else ():
            file = log.file_of(offset) if log is not None else None
            if result.message is None or file is None:
                continue
            raw = _bytes_at(file.path, offset - file.start, result.message.total_size)
            if all(one.find(raw) < 0 for one in logs):
                return False
    return True


def holds_nothing(path: Path) -> bool:
    """Return whether a directory has no batch and no record, sound or not."""
    try:
        return next(_parts(path), None) is None
    except (SegproofError, OSError):
        return False


def _loss(parts: Sequence[Part], begin: int, end: int) -> str:
    """Return which kind of loss it is that these parts are gone."""
    if end == len(parts):
        return "end"
    if begin == 0 and parts[end - 1].file != parts[end].file:
        return "front"
    return "gap" if "segment" in parts[begin].fields else "hole"


@cache
def _log(source: Path) -> tuple[Part, ...]:
    return tuple(_parts(source))


def _parts(path: Path) -> Iterator[Part]:
    """Yield the batches of a partition, or the records of a store."""
    if is_store(path):
        yield from _records(path)
        return
    with PartitionReader(path) as reader:
        for start in reader.base_offsets:
            segment = reader.segment(start)
            for batch in segment.log.batches():
                raw = _bytes_at(segment.path(".log"), batch.position, batch.size_bytes)
                fields = {"segment": start, "base_offset": raw[:8]}
                if not batch.is_legacy:
                    fields["leader_epoch"] = raw[12:16]
                rest = raw[8:12] + raw[12 if batch.is_legacy else 16 :]
                yield Part(str(start), rest, fields, batch.is_valid())


def _bytes_at(path: str, position: int, size: int) -> bytes:
    """Read some bytes: the whole of a file may be a hole of terabytes."""
    with open(path, "rb", buffering=0) as file:
        file.seek(position)
        return file.read(size)


def _records(store: Path) -> Iterator[Part]:
    """Yield the records of a store, and what follows them if it is neither blank nor zeros."""
    log = StoreReader(store).log
    for offset, result in log.scan() if log is not None else ():
        file = log.file_of(offset) if log is not None else None
        if file is None:  # the end of a log whose last file has no room left
            continue
        if result.message is not None:
            fields = {"place": offset, **asdict(result.message)}
            flag = result.message.sys_flag
            fields["is_hidden"] = flag & PREPARED and flag & TRANSACTION_BITS
            yield Part(file.path, fields.pop("body"), fields)
        elif any(rest := _bytes_at(file.path, offset - file.start, 8)):
            yield Part(file.path, rest, {}, is_sound=False)


# --- answers


@cache
def answers(source: Path) -> tuple[tuple[Question, Any], ...]:
    """Return questions that the healthy directory answers; releases before 5.4.0 index no tags."""
    return tuple(pair for pair in _asked(source, _questions(source)) if pair[1])


def _questions(source: Path) -> list[Question]:
    draw = random.Random(source.name)
    asked: dict[str, list[Any]] = {}
    if is_store(source):
        offsets, keys = _keys(source)
        asked = {"--phy-offset": offsets, "--key": list(keys)}
    else:
        ends, times = [], []
        with PartitionReader(source) as reader:
            for start in reader.base_offsets:
                for batch in reader.segment(start).log.batches():
                    ends += [batch.base_offset, batch.last_offset]
                    times += [batch.max_timestamp] if batch.max_timestamp >= 0 else []
        asked = {"--offset": ends, "--timestamp": times}
    return [(kind, str(each)) for kind, values in asked.items() for each in _some(draw, values)]


def _some(draw: random.Random, all_of_them: list[Any]) -> list[Any]:
    found = sorted(set(all_of_them))
    return draw.sample(found, min(ASKED, len(found)))


def _keys(store: Path) -> tuple[list[int], dict[str, list[int]]]:
    """Return where the messages of a store lie; and for each key those that have it."""
    log = StoreReader(store).log
    offsets: list[int] = []
    keys: dict[str, list[int]] = {}
    for offset, result in log.scan() if log is not None else ():
        if result.message is not None:
            offsets.append(offset)
            request = dispatch_request_of(result.message)
            for key in (*keys_of(request), tag_key_of(request)):
                keys.setdefault(str(key), []).append(offset)
    return offsets, keys


def _by_log(folder: Path, questions: Sequence[Question], scratch: Path) -> Iterator[Any]:
    """Yield each question with what the log alone answers."""
    if not is_store(folder):
        bare = scratch / folder.name
        bare.mkdir(parents=True)
        for log in folder.glob("*.log"):
            shutil.copyfile(log, bare / log.name)
        old_times(bare)
        yield from _asked(bare, questions)
        return
    _, keys = _keys(folder)
    for question, answer in _asked(folder, questions):
        kind, target = question
        yield question, keys.get(target, [])[::-1] if kind == "--key" else answer


def _asked(path: Path, questions: Sequence[Question]) -> Iterator[tuple[Question, Any]]:
    """Yield each question with its answer, or with the error in words."""
    try:
        opened: Any = nullcontext(StoreReader(path)) if is_store(path) else PartitionReader(path)
    except (SegproofError, OSError) as error:
        yield from ((question, f"error: {error}") for question in questions)
        return
    with opened as reader:
        for question in questions:
            try:
                yield question, _answer(reader, *question)
            except (SegproofError, OSError) as error:
                yield question, f"error: {error}"


def _is_error(answer: Any) -> bool:
    return isinstance(answer, str)


def _answer(reader: Any, kind: str, target: str) -> Any:
    if kind == "--key":
        found = reader.lookup_key(target, max_num=1 << 20)
        has_no_index = not found.phy_offsets and (found.reason or "").startswith(NO_INDEX)
        return NO_INDEX if has_no_index else list(found.phy_offsets)
    if isinstance(reader, StoreReader):
        return reader.look_message(int(target))
    if kind == "--offset":
        found = reader.lookup_offset(int(target))
        return [found.segment_base_offset, found.batch_base_offset, found.batch_position]
    found = reader.lookup_timestamp(int(target))
    return [found.timestamp, found.offset]
