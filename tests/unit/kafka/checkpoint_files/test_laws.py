# SPDX-License-Identifier: Apache-2.0
"""Each law of checkpoints, leader epochs and partition.metadata finds what breaks it."""

from dataclasses import replace
from typing import Any

import pytest

from segproof_model.kafka.broker.checkpoint_file import EpochEntry, LeaderEpochCheckpointFile
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.partition_metadata_file import PartitionMetadataFile
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, frozen
from segproof_model.laws.register import LAWS, broken_state_laws, broken_step_laws
from segproof_model.releases import NEWEST_KAFKA, SEGPROOF
from segproof_tests.model_steps import lawful

IO_ERROR = Raised(ErrorKind.IO_ERROR)
NUMBER_FORMAT = Raised(ErrorKind.NUMBER_FORMAT)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
TOPIC_ID = bytes([0] * 15 + [1])
SYNCED = (("write", "f.tmp", b"new"), ("sync", "f.tmp", None))
MOVED = ("rename", "f.tmp", "f")


def file_of(kind: Any, data: bytes, release: Release = NEWEST_KAFKA) -> Any:
    """Return the file `f` with these bytes."""
    return frozen(release.kind(kind)(Files({"f": data}), "f"))


@pytest.mark.parametrize(
    ("law", "data", "outcome"),
    [
        ("CKPT-1", b"0\n1\n1 5\n", []),
        ("CKPT-1", b"0\n2\n1 5\n", [(1, 5)]),
        ("CKPT-1", b"\xff", []),
        ("CKPT-2", b"0\n", IO_ERROR),
        ("CKPT-3", b"1\n", []),
        ("CKPT-3", b"0\nx\n", []),
        ("CKPT-3", b"0\n1\n1 5 7\n", [(1, 5)]),
        ("CKPT-3", b"0\n2\n1 5\n", [(1, 5)]),
        ("CKPT-3", b"0\n-1\n", IO_ERROR),
        ("CKPT-4", b"0\n1\nx 5\n", IO_ERROR),
        ("CKPT-4", b"0\n1\n2147483648 5\n", [(2147483648, 5)]),
        ("CKPT-4", b"0\n1\n7 5\n", NUMBER_FORMAT),
        ("META-2", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", (0, bytes(16))),
        ("META-2", b"version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", (-1, TOPIC_ID)),
        ("META-2", b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", IO_ERROR),
    ],
)
def test_broken_reads(law: str, data: bytes, outcome: object) -> None:
    """Another answer than the model's breaks the law."""
    kind = PartitionMetadataFile if law == "META-2" else LeaderEpochCheckpointFile
    right = lawful(file_of(kind, data), "read")
    assert not LAWS[law].predicate(replace(right, outcome=outcome))


ENTRIES = [EpochEntry(1, 5), EpochEntry(2, 7)]


@pytest.mark.parametrize(
    ("law", "release", "data", "outcome"),
    [
        ("CKPT-6", NEWEST_KAFKA, b"0\n2\n2 7\n1 5\n", None),
        ("CKPT-6", NEWEST_KAFKA, b"0\n3\n2 7\n1 5\n", None),
        ("CKPT-6", NEWEST_KAFKA, b"", INVALID_ARGUMENT),
        ("CKPT-6", SEGPROOF, b"0\n0\n", INVALID_ARGUMENT),
        ("META-1", NEWEST_KAFKA, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n", None),
        ("META-1", NEWEST_KAFKA, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg", None),
    ],
)
def test_broken_writes(law: str, release: Release, data: bytes, outcome: object) -> None:
    """Other bytes than were to be written break the law, and an error where there is none."""
    kind: Any = LeaderEpochCheckpointFile
    arguments: dict[str, Any] = {"entries": ENTRIES}
    if law == "META-1":
        kind, arguments = PartitionMetadataFile, {"topic_id": TOPIC_ID}
    right = lawful(file_of(kind, b"", release), "write", **arguments)
    wrong = replace(right, after=file_of(kind, data, release), outcome=outcome)
    assert [law] == broken_step_laws(wrong)


def test_what_a_crash_leaves() -> None:
    """Written, synced, moved: also where it ends at any of these; nothing else is sound."""
    is_sound, calls = LAWS["CKPT-5"].predicate, (*SYNCED, MOVED)
    assert all(is_sound("f", b"new", calls[:end]) for end in range(len(calls) + 1))
    assert not is_sound("f", b"newer", calls)
    assert not is_sound("f", b"new", [SYNCED[0], MOVED])
    assert not is_sound("f", b"new", [SYNCED[1], SYNCED[0], MOVED])
    assert not is_sound("f", b"new", [("write", "f", b"new")])
    assert not is_sound("f", b"new", [("truncate", "f", None)])


def cache_of(*pairs: tuple[int, int], release: Release = SEGPROOF) -> Any:
    """Return a cache with these entries, and a file that holds them."""
    cache = release.kind(LeaderEpochFileCache)(Files(), "f")
    cache.entries = tuple(EpochEntry(*pair) for pair in pairs)
    cache.write()
    return frozen(cache)


@pytest.mark.parametrize("second", [(0, 5), (1, 5), (2, 3), (2, 2)])
def test_disorder(second: tuple[int, int]) -> None:
    """Neither epochs nor starts may stand still or fall."""
    assert ["EPOCH-1"] == broken_state_laws(cache_of((1, 3), second))
    assert [] == broken_state_laws(cache_of((1, 3), (2, 4)))


BEFORE = cache_of((1, 10), (3, 30))
NAMES = {
    "assign": ("leader_epoch", "start_offset"),
    "end_offset_for": ("requested_epoch", "log_end_offset"),
    "truncate_from_end": ("end_offset",),
    "truncate_from_start": ("start_offset",),
    "epoch_for_offset": ("offset",),
}


@pytest.mark.parametrize(
    ("laws", "operation", "arguments", "after", "outcome"),
    [
        ("EPOCH-2 EPOCH-3 EPOCH-4", "assign", (-1, 40), BEFORE, None),
        ("EPOCH-3", "assign", (3, 40), cache_of((3, 40)), None),
        ("EPOCH-3 EPOCH-4", "assign", (2, 20), BEFORE, None),
        ("EPOCH-4", "assign", (2, 20), cache_of((1, 10), (3, 30), (2, 20)), None),
        ("EPOCH-5", "end_offset_for", (-1, 9), BEFORE, (-1, 9)),
        ("EPOCH-6", "end_offset_for", (3, 90), BEFORE, (3, 30)),
        ("EPOCH-7", "end_offset_for", (2, 90), BEFORE, (2, 30)),
        ("EPOCH-7", "end_offset_for", (4, 9), BEFORE, (3, 9)),
        ("EPOCH-8", "truncate_from_end", (30,), BEFORE, None),
        ("EPOCH-9", "truncate_from_start", (20,), cache_of((3, 30)), None),
        ("EPOCH-10", "epoch_for_offset", (29,), BEFORE, 3),
        ("EPOCH-11", "clear_and_flush", (), apply(BEFORE, "clear").after, None),
    ],
)
def test_broken_steps(
    laws: str, operation: str, arguments: tuple[int, ...], after: Any, outcome: object
) -> None:
    """A wrong step breaks the law that speaks of it; what the model does instead breaks none."""
    right = lawful(BEFORE, operation, **dict(zip(NAMES.get(operation, ()), arguments, strict=True)))
    wrong = replace(right, after=after, outcome=outcome)
    assert laws.split() == sorted(broken_step_laws(wrong))


def test_scheduled_write_follows_the_cache() -> None:
    """Under the newest release a truncation leaves the file as it is, until the write has run."""
    before = cache_of((1, 10), (3, 30), release=NEWEST_KAFKA)
    cut = lawful(before, "truncate_from_end", end_offset=30).after
    assert (before.to_bytes(), True) == (cut.to_bytes(), cut.is_write_pending)
    written = lawful(cut, "run_scheduled_write")
    assert (b"0\n1\n1 10\n", False) == (written.after.to_bytes(), written.after.is_write_pending)
    never = apply(cut, lambda cache: setattr(cache, "is_write_pending", False)).after
    assert ["EPOCH-11"] == broken_step_laws(replace(written, after=never))
