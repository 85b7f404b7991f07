# SPDX-License-Identifier: Apache-2.0
"""Text checkpoints, leader epochs and partition.metadata: what the classes of Kafka 4.3.1 did.

The model answers as they did, to the byte. So does the implementation but for its deviations: other
damage than a bad number of an entry is an I/O error always, no write is put off, and a zero
topic id is not written.
"""

import json
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from segproof.kafka import checkpoint_file, leader_epoch_cache, partition_metadata_file
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.structures.outcomes import Outcome, of_model, outcome_of
from segproof_model.kafka.broker import checkpoint_file as model_checkpoint_file
from segproof_model.kafka.broker import leader_epoch_cache as model_leader_epoch_cache
from segproof_model.kafka.broker import partition_metadata_file as model_partition_metadata_file
from segproof_model.language.files import Files
from segproof_model.language.states import apply, opened
from segproof_model.language.states import outcome_of as outcome_of_model

GOLDEN = json.loads((Path(__file__).parent / "checkpoints.json").read_text(encoding="ascii"))
OPERATIONS = {
    "assign": "assign",
    "end": "truncate_from_end",
    "start": "truncate_from_start",
    "clear": "clear",
    "clearflush": "clear_and_flush",
    "run": "run_scheduled_write",
}
QUERIES = {
    "for": "end_offset_for",
    "latest": "latest_epoch",
    "previous": "previous_epoch",
    "before": "previous_epoch_before",
    "next": "next_epoch",
    "latestentry": "latest_entry",
    "earliestentry": "earliest_entry",
    "at": "epoch_for_offset",
    "range": "epoch_entries_in_range",
}
LAWS_OF_CHECKPOINTS = ("CKPT-1", "CKPT-2", "CKPT-3", "CKPT-4", "CKPT-6", "META-1", "META-2")
LAWS_OF_EPOCHS = (
    "EPOCH-1", "EPOCH-2", "EPOCH-3", "EPOCH-4", "EPOCH-5", "EPOCH-6", "EPOCH-7", "EPOCH-8",
    "EPOCH-9", "EPOCH-10", "EPOCH-11",
)  # fmt: skip


def in_memory(data: bytes | None) -> MemoryFiles:
    """Return files in memory with `/d/file`, if data are given."""
    files = MemoryFiles()
    files.make_directory("/d")
    if data is not None:
        write_file(files, "/d/file", data)
    return files


def text_of_pairs(pairs: Any) -> str:
    """Return entries as the golden file has them."""
    return ",".join(f"{one}:{two}" for one, two in pairs)


def text_of_read(kind: str, outcome: Outcome, value: Any) -> str:
    """Return the outcome of a read as the golden file has it."""
    if outcome.error is not None:
        return f"error {outcome.error}"
    if kind == "offset":
        rows = [f"{topic.encode().hex()}/{n}/{at}" for (topic, n), at in value.items()]
        return f"ok {','.join(sorted(rows))}".strip()
    if kind == "epoch":
        return f"ok {text_of_pairs(value)}".strip()
    topic_id = getattr(value.topic_id, "bytes", value.topic_id)
    return f"ok {value.version}/{topic_id.hex()}"


def model_read(kind: str, data: bytes) -> str:
    """Read a file with the model of the release."""
    classes: Any = {
        "offset": model_checkpoint_file.OffsetCheckpointFile,
        "epoch": model_checkpoint_file.LeaderEpochCheckpointFile,
        "meta": model_partition_metadata_file.PartitionMetadataFile,
    }
    value = outcome_of_model(classes[kind](Files({"file": data}), "file").read)
    return text_of_read(kind, of_model(value), value)


def impl_read(kind: str, data: bytes) -> str:
    """Read a file with the implementation."""
    files = in_memory(data)
    classes: Any = {
        "offset": checkpoint_file.OffsetCheckpointFile,
        "epoch": checkpoint_file.LeaderEpochCheckpointFile,
        "meta": partition_metadata_file.PartitionMetadataFile,
    }
    seen: list[Any] = []
    outcome = outcome_of(lambda: seen.append(classes[kind]("/d/file", files=files).read()))
    return text_of_read(kind, outcome, seen[0] if seen else None)


@pytest.mark.checks(*LAWS_OF_CHECKPOINTS)
def test_reads() -> None:
    """Each file, sound or damaged, is read as the release reads it, error kinds included."""
    assert len(GOLDEN["read"]) > 300
    for kind, data, answer in GOLDEN["read"]:
        assert answer == model_read(kind, bytes.fromhex(data)), (kind, data)
        wanted = answer
        if answer in ("error invalid-argument", "error unmapped"):
            wanted = "error io-error"
        assert wanted == impl_read(kind, bytes.fromhex(data)), (kind, data)


def written(state: Any) -> str:
    """Return the bytes of the file in hexadecimal."""
    data: bytes = state.files.image("file")
    return data.hex()


@pytest.mark.checks("CKPT-1", "CKPT-6", "META-1")
def test_writes() -> None:
    """What is written is, byte for byte, what the release writes."""
    for command, answer in GOLDEN["write"]:
        kind, what = command.split(" ")
        files = in_memory(None)
        if kind == "writemeta":
            topic_id = uuid.UUID(hex=what)
            model = model_partition_metadata_file.PartitionMetadataFile(Files(), "file")
            model.write(topic_id.bytes)
            assert answer == f"ok {written(model)}"
            if topic_id.int:
                partition_metadata_file.PartitionMetadataFile(
                    "/d/file", create=True, files=files
                ).write(topic_id)
                assert answer == f"ok {files.images('/d')['file'].hex()}"
            continue
        rows = [] if what == "-" else [row.split("/") for row in what.split(",")]
        offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in rows}
        checkpoint = model_checkpoint_file.OffsetCheckpointFile(Files(), "file")
        checkpoint_file.OffsetCheckpointFile("/d/file", create=True, files=files)
        assert {"file": b""} == dict(checkpoint.files.images) == files.images("/d")
        checkpoint.write(offsets)
        checkpoint_file.OffsetCheckpointFile("/d/file", create=True, files=files).write(offsets)
        assert answer == f"ok - {written(checkpoint)} {','.join(checkpoint.files)}"
        assert dict(checkpoint.files.images) == files.images("/d")


def text_of_answer(outcome: Outcome) -> str:
    """Return the outcome of a query or operation as the golden file has it."""
    if outcome.error is not None:
        return f"error {outcome.error}"
    value = outcome.value
    if isinstance(value, tuple) and (not value or isinstance(value[0], tuple)):
        return f"ok {text_of_pairs(value)}".strip()
    if isinstance(value, tuple):
        return f"ok {text_of_pairs([value])}"
    return f"ok {'none' if value is None else value}"


def run_model(history: list[list[Any]]) -> list[list[str]]:
    """Return the rows of a history as the model of the release makes them."""
    rows: list[list[str]] = []
    state: Any = None
    for command, *_ in history:
        name, *arguments = command.split(" ")
        if name == "open":
            data = bytes.fromhex(arguments[0].replace("-", ""))
            step = opened(
                model_leader_epoch_cache.LeaderEpochFileCache, Files({"file": data}), "file"
            )
        else:
            method = {**OPERATIONS, **QUERIES}[name]
            step = apply(state, method, *map(int, arguments))
        state, outcome = step.after, of_model(step.outcome)
        if name == "open" and outcome.error is not None:
            return [[command, text_of_answer(outcome)]]
        answer = text_of_answer(outcome) if name in QUERIES or outcome.error else "ok"
        file = state.to_bytes().hex() or "-"
        rows.append([command, answer, text_of_pairs(state.entries), file, state.is_write_pending])
    return rows


@pytest.mark.checks(*LAWS_OF_EPOCHS)
@pytest.mark.parametrize("number", range(len(GOLDEN["histories"])))
def test_model_of_epochs(number: int) -> None:
    """Every answer, entry and byte of a history is that of the release."""
    history = GOLDEN["histories"][number]
    expected = [[*row[:4], row[4] != "0"] if len(row) > 2 else row for row in history]
    assert expected == run_model(history)


class BelowTheFirst(leader_epoch_cache.LeaderEpochFileCache):
    """Planted: nothing is known below the first epoch."""

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return -1 and -1 there."""
        first = self.earliest_entry()
        if first is not None and requested_epoch < first.epoch:
            return -1, -1
        return super().end_offset_for(requested_epoch, log_end_offset)


class AsRequested(leader_epoch_cache.LeaderEpochFileCache):
    """Planted: an offset is told with the requested epoch, not with the one that there is."""

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return another epoch."""
        epoch, offset = super().end_offset_for(requested_epoch, log_end_offset)
        return epoch if epoch == -1 else requested_epoch, offset


class NoneOfNone(leader_epoch_cache.LeaderEpochFileCache):
    """Planted: without any entry, no epoch ends where the log does."""

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the end of the log for -1."""
        if requested_epoch == -1 and not self.epoch_entries():
            return -1, log_end_offset
        return super().end_offset_for(requested_epoch, log_end_offset)


class OnlyForward(leader_epoch_cache.LeaderEpochFileCache):
    """Planted: an epoch that conflicts with later ones is ignored, and these stay."""

    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """Assign it if it is later than the latest, and begins behind it."""
        latest = self.latest_entry() or (-1, -1)
        if leader_epoch > latest[0] and start_offset > latest[1]:
            super().assign(leader_epoch, start_offset)


def opened_cache(files: MemoryFiles, of_class: Any) -> tuple[Outcome, Any]:
    """Open the file with the implementation; return the outcome, and the cache if it is open."""
    seen: list[Any] = []
    opening = partial(of_class.open, "/d/file", create=True, files=files)
    outcome = outcome_of(lambda: seen.append(opening()))
    return outcome, seen[0] if seen else None


def first_difference(history: list[list[Any]], of_class: Any) -> tuple[str, str, str] | None:
    """Return command, expected and actual where the implementation first parts from a history."""
    files = MemoryFiles()
    cache: Any = None
    for command, answer, *rest in history:
        name, *arguments = command.split(" ")
        if name == "open":
            files = in_memory(bytes.fromhex(arguments[0].replace("-", "")))
            outcome, cache = opened_cache(files, of_class)
        elif name == "run":
            continue
        else:
            method = getattr(cache, {**OPERATIONS, **QUERIES}[name])
            outcome = outcome_of(partial(method, *map(int, arguments)))
        text = text_of_answer(outcome)
        told = [text if name in QUERIES or outcome.error else "ok"]
        wanted = [answer]
        if cache is not None:
            entries, file, pending = rest
            wanted.append(entries)
            told.append(text_of_pairs(cache.epoch_entries()))
            if pending == "0":
                wanted.append(file.replace("-", ""))
                told.append(files.images("/d")["file"].hex())
        for expected, actual in zip(wanted, told, strict=True):
            if expected != actual:
                return command, expected, actual
    return None


@pytest.mark.checks(*LAWS_OF_EPOCHS)
@pytest.mark.parametrize("number", range(len(GOLDEN["histories"])))
def test_implementation_of_epochs(number: int) -> None:
    """The same, but for the file where the release has put off the write."""
    history = GOLDEN["histories"][number]
    assert None is first_difference(history, leader_epoch_cache.LeaderEpochFileCache)


@pytest.mark.parametrize(
    ("planted", "commands"),
    [
        (OnlyForward, {"assign", "open"}),
        (BelowTheFirst, {"for"}),
        (AsRequested, {"for"}),
        (NoneOfNone, {"for"}),
    ],
)
def test_planted_defects_are_caught(planted: Any, commands: set[str]) -> None:
    """Defects of old releases, planted into the cache, part from a history, where they should."""
    found = [first_difference(history, planted) for history in GOLDEN["histories"]]
    caught = {one[0].partition(" ")[0] for one in found if one is not None}
    assert caught
    assert caught <= commands
