# SPDX-License-Identifier: Apache-2.0
"""Each law of checkpoints, leader epochs and partition.metadata finds what breaks it.

Used by: the tox environments `quick` and `py311` to `py313`.
"""

from dataclasses import replace
from typing import Any

import pytest

from segproof_model.directory import Directory
from segproof_model.kafka.checkpoint_file import EpochEntry
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.laws.checking import broken_state_laws, broken_step_laws
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import KAFKA_4_3_1, SEGPROOF

IO_ERROR = Raised(ErrorKind.IO_ERROR)
NUMBER_FORMAT = Raised(ErrorKind.NUMBER_FORMAT)
TOPIC_ID = bytes([0] * 15 + [1])
SYNCED = (("write", "f.tmp", b"new"), ("sync", "f.tmp", None))
MOVED = ("rename", "f.tmp", "f")


@pytest.mark.parametrize(
    ("law", "arguments"),
    [
        ("CKPT-1", (b"0\n1\nx\n", [])),
        ("CKPT-1", (b"0\n2\nx\n", ["x"])),
        ("CKPT-1", (b"\xff", [])),
        ("CKPT-2", (b"0\n", IO_ERROR)),
        ("CKPT-3", (b"1\n", 1, [])),
        ("CKPT-3", (b"0\nx\n", 1, [])),
        ("CKPT-3", (b"0\n1\na b\n", 1, ["a"])),
        ("CKPT-3", (b"0\n2\na\n", 1, ["a"])),
        ("CKPT-3", (b"0\n-1\n", 1, IO_ERROR)),
        ("CKPT-4", ([("x", 32)], IO_ERROR)),
        ("CKPT-4", ([("2147483648", 32)], [2147483648])),
        ("CKPT-4", ([("7", 32)], NUMBER_FORMAT)),
        ("CKPT-5", ("f", b"new", [("write", "f", b"new")])),
        ("CKPT-5", ("f", b"new", [("truncate", "f", None)])),
        ("CKPT-5", ("f", b"new", [SYNCED[0], MOVED])),
        ("CKPT-5", ("f", b"new", [SYNCED[1], SYNCED[0], MOVED])),
        ("CKPT-5", ("f", b"newer", [*SYNCED, MOVED])),
        ("CKPT-6", ([1, 2], None, [2, 1])),
        ("CKPT-6", ([1], None, IO_ERROR)),
        ("CKPT-6", ([1], Raised(ErrorKind.INVALID_ARGUMENT), [])),
        ("META-1", (TOPIC_ID, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")),
        ("META-1", (TOPIC_ID, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")),
        ("META-2", (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", (0, bytes(16)))),
        ("META-2", (b"version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", (-1, TOPIC_ID))),
        ("META-2", (b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", IO_ERROR)),
    ],
)
def test_broken_texts(law: str, arguments: tuple[Any, ...]) -> None:
    """The predicate says no."""
    assert not LAWS[law].predicate(*arguments)


def test_sound_write_is_lawful() -> None:
    """Written, synced, moved: also where it ends at any of these."""
    calls = (*SYNCED, MOVED)
    for end in range(len(calls) + 1):
        assert LAWS["CKPT-5"].predicate("f", b"new", calls[:end])


def cache_of(*pairs: tuple[int, int]) -> LeaderEpochFileCache:
    """Return a cache with these entries, and a file that holds them."""
    opened = LeaderEpochFileCache.open("f", directory=Directory(), profile=SEGPROOF).after
    assert isinstance(opened, LeaderEpochFileCache)
    return replace(opened, entries=tuple(EpochEntry(*pair) for pair in pairs)).written()


@pytest.mark.parametrize("second", [(0, 5), (1, 5), (2, 3), (2, 2)])
def test_disorder(second: tuple[int, int]) -> None:
    """Neither epochs nor starts may stand still or fall."""
    assert ["EPOCH-1"] == broken_state_laws(cache_of((1, 3), second))
    assert [] == broken_state_laws(cache_of((1, 3), (2, 4)))


BEFORE = cache_of((1, 10), (3, 30))
WRONG_STEPS: list[tuple[set[str], str, dict[str, int], LeaderEpochFileCache, object]] = [
    (
        {"EPOCH-2", "EPOCH-3", "EPOCH-4"},
        "assign",
        {"leader_epoch": -1, "start_offset": 40},
        BEFORE,
        None,
    ),
    ({"EPOCH-3"}, "assign", {"leader_epoch": 3, "start_offset": 40}, cache_of((3, 40)), None),
    ({"EPOCH-3", "EPOCH-4"}, "assign", {"leader_epoch": 2, "start_offset": 20}, BEFORE, None),
    (
        {"EPOCH-4"},
        "assign",
        {"leader_epoch": 2, "start_offset": 20},
        cache_of((1, 10), (3, 30), (2, 20)),
        None,
    ),
    ({"EPOCH-5"}, "end_offset_for", {"requested_epoch": -1, "log_end_offset": 9}, BEFORE, (-1, 9)),
    ({"EPOCH-6"}, "end_offset_for", {"requested_epoch": 3, "log_end_offset": 90}, BEFORE, (3, 30)),
    ({"EPOCH-7"}, "end_offset_for", {"requested_epoch": 2, "log_end_offset": 90}, BEFORE, (2, 30)),
    ({"EPOCH-7"}, "end_offset_for", {"requested_epoch": 4, "log_end_offset": 9}, BEFORE, (3, 9)),
    ({"EPOCH-8"}, "truncate_from_end", {"end_offset": 30}, BEFORE, None),
    ({"EPOCH-9"}, "truncate_from_start", {"start_offset": 20}, cache_of((3, 30)), None),
    ({"EPOCH-10"}, "epoch_for_offset", {"offset": 29}, BEFORE, 3),
    (
        {"EPOCH-11"},
        "clear_and_flush",
        {},
        replace(BEFORE, entries=()),
        None,
    ),
]


@pytest.mark.parametrize(("laws", "operation", "arguments", "after", "outcome"), WRONG_STEPS)
def test_broken_steps(
    laws: set[str],
    operation: str,
    arguments: dict[str, int],
    after: LeaderEpochFileCache,
    outcome: object,
) -> None:
    """A wrong step breaks the law that speaks of it; what the model does instead breaks none."""
    wrong = Transition(BEFORE, operation, arguments, after, outcome)
    assert laws == set(broken_step_laws(wrong))
    answer = getattr(BEFORE, operation)(**arguments)
    step = answer if isinstance(answer, Step) else Step(BEFORE, answer)
    right = Transition(BEFORE, operation, arguments, step.after, step.outcome)
    assert [] == broken_step_laws(right)


def test_scheduled_write_follows_the_cache() -> None:
    """Under the newest release a truncation leaves the file as it is, until the write has run."""
    before = replace(BEFORE, profile=KAFKA_4_3_1)
    cut = before.truncate_from_end(30).after
    assert (before.to_bytes(), True) == (cut.to_bytes(), cut.is_write_pending)
    assert [] == broken_step_laws(
        Transition(before, "truncate_from_end", {"end_offset": 30}, cut, None)
    )
    never = replace(cut, is_write_pending=False)
    assert ["EPOCH-11"] == broken_step_laws(Transition(cut, "run_scheduled_write", {}, never, None))
    done = cut.run_scheduled_write().after
    assert (b"0\n1\n1 10\n", False) == (done.to_bytes(), done.is_write_pending)
