# SPDX-License-Identifier: Apache-2.0
"""The page of the model's size, docs/results/size.md: code lines and branches, room by room.

Used by: docs/generate.py.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

MODEL = Path(__file__).resolve().parents[2] / "model" / "segproof_model"

OPENING = """\
# Size of the model

Who should read this: whoever asks how much there is to read, or whether the model grows where it
should not. What is counted here is generated from the files; what was measured once says so.

A code line is one that is not blank, not a comment, and no part of a docstring; imports count. A
branch is an `if`, `elif`, `for`, `while`, `except` or conditional expression; `and`, `or` and
comprehensions are not counted. Lines and branches of functions are those of `language`, Kafka and
RocketMQ; the laws and `releases.py` count in code lines only. What the newest
release does stands in the files of the structures; what older releases and segproof do otherwise in
those whose names end in `_releases` and the like, and in `_deviations`.

*Before* is the last commit on which one file said all releases, by flags.

"""
TABLE = """\
| room | before | newest release | goal | older releases | segproof |
| --- | --- | --- | --- | --- | --- |
"""
CLOSING = """
Beside these, `releases.py` lists releases and behaviours in {listed} code lines; flags and profiles
had 1 593 before. All of the model has {total} code lines; before it had 17 697.

- {behaviours} behaviours have {behaviour} lines at the median, with their sentences and all
  (goal: 20); the longest has {largest}.
- {functions} functions have {function} code lines at the median, and {mean} branches at the mean.
- The longest function is {longest}.
- The most branches has {branched}.

## How the plain model was held

Before the older model was let go, both ran the same histories of 50 operations, under `segproof`
and each release: {held}.
No answer, kind of error or byte differed.

## How fast it is replayed

Histories of 50 operations under `segproof`; drawing, model, laws and comparison are all in it. The
last commit with the older model and this one took turns in one run on a busy machine; the figures
are the CPU time before divided by that now, over 10 to 60 slices. The goal is 1.0. Two runs of one
commit differ by up to 0.04.

| structure | model beside implementation | model alone |
| --- | --- | --- |
{replays}

A dash: not measured. The steps of a whole log alone, without drawing, laws and comparison, took 1.6
to 2.3 times as long before. Whole logs are replayed no faster than before all the same: laws that
load a log once more take most of the time.
"""
HELD = "20 000 histories of each structure, 3 000 of RocketMQ's whole store"
REPLAYS = {
    "offset-index": ("1.10", "-"),
    "time-index": ("1.09", "1.09"),
    "transaction-index": ("1.09", "-"),
    "record-batch": ("0.98", "0.97"),
    "record-file": ("1.01", "0.97"),
    "log-segment": ("0.98", "1.03"),
    "partition-log": ("1.02", "1.01"),
    "index-file": ("1.03", "-"),
    "index-service": ("1.08", "-"),
    "commit-log": ("1.04", "-"),
    "consume-queue": ("1.46", "-"),
    "store-checkpoint": ("1.05", "-"),
    "message-store": ("1.28", "1.38"),
}
"""Measured on 2026-11-23, not counted: the older model is gone."""
BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp)


class Room(NamedTuple):
    """A folder of the model, or several, and what it had before."""

    title: str
    folders: tuple[str, ...]
    before: int
    goal: str = ""


KAFKA, ROCKETMQ = ("kafka/format", "kafka/broker"), ("rocketmq/format", "rocketmq/broker")
ROOMS = (
    Room("`language`", ("language",), 109),
    Room("`kafka/format`", KAFKA[:1], 3238, "2 300"),
    Room("`kafka/broker`", KAFKA[1:], 3845),
    Room("all of Kafka", KAFKA, 7083, "5 000"),
    Room("`rocketmq/format`", ROCKETMQ[:1], 968),
    Room("`rocketmq/broker`", ROCKETMQ[1:], 642),
    Room("all of RocketMQ", ROCKETMQ, 1610, "1 300"),
    Room("`laws`", ("laws",), 7302, "5 000"),
)


class Function(NamedTuple):
    """A function and its size."""

    name: str
    lines: int
    branches: int


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines that are code."""
    lines = {number for number, line in enumerate(text.splitlines(), 1) if is_code(line)}
    for node in ast.walk(ast.parse(text)):
        text_alone = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text_alone, ast.Constant) and isinstance(text_alone.value, str):
            lines -= set(range(text_alone.lineno, (text_alone.end_lineno or 0) + 1))
    return lines


def is_code(line: str) -> bool:
    """Return whether a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def files_of(room: Room) -> list[Path]:
    """Return the files of a room, and of the rooms in it."""
    return [path for folder in room.folders for path in sorted((MODEL / folder).rglob("*.py"))]


def kind_of(path: Path) -> str:
    """Return whose behaviour a file says."""
    if path.stem.endswith("_deviations"):
        return "segproof"
    return "older" if "_releases" in path.stem else "newest"


def count(paths: list[Path]) -> int:
    """Return the code lines of files."""
    return sum(len(code_lines(path.read_text(encoding="utf-8"))) for path in paths)


def room_row(room: Room) -> str:
    """Return the row of a room."""
    found = {
        kind: count([path for path in files_of(room) if kind_of(path) == kind])
        for kind in ("newest", "older", "segproof")
    }
    cells = [room.title, grouped(room.before), grouped(found["newest"]), room.goal]
    cells += [grouped(found[kind]) if found[kind] else "" for kind in ("older", "segproof")]
    return f"| {' | '.join(cells)} |\n"


def grouped(number: int) -> str:
    """Return a number with its thousands apart."""
    return f"{number:,}".replace(",", " ")


def functions() -> Iterator[Function]:
    """Yield the functions of the structures."""
    for path in files_of(Room("", ("language", *KAFKA, *ROCKETMQ), 0)):
        text = path.read_text(encoding="utf-8")
        numbers = code_lines(text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                branches = sum(isinstance(one, BRANCHES) for one in ast.walk(node))
                name = f"`{node.name}` in `{path.relative_to(MODEL)}`"
                yield Function(name, len(numbers.intersection(inside)), branches)


def behaviour_lines() -> list[int]:
    """Return the lines of each behaviour, with its sentence and all."""
    return [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in MODEL.rglob("*.py")
        if kind_of(path) != "newest" and "laws" not in path.relative_to(MODEL).parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Behaviour" for base in node.bases)
    ]


def pages() -> dict[str, str]:
    """Return the page by path."""
    known, lines = list(functions()), behaviour_lines()
    longest = max(known, key=lambda one: one.lines)
    branched = max(known, key=lambda one: one.branches)
    text = OPENING + TABLE + "".join(map(room_row, ROOMS))
    text += CLOSING.format(
        held=HELD,
        replays="\n".join(f"| {name} | {' | '.join(both)} |" for name, both in REPLAYS.items()),
        listed=count([MODEL / "releases.py"]),
        total=grouped(count(sorted(MODEL.rglob("*.py")))),
        behaviours=len(lines),
        behaviour=f"{median(lines):g}",
        largest=max(lines),
        functions=grouped(len(known)),
        function=f"{median(one.lines for one in known):g}",
        longest=f"{longest.name} with {longest.lines} (goal: 40)",
        branched=f"{branched.name} with {branched.branches} (goal: 8)",
        mean=f"{sum(one.branches for one in known) / len(known):.1f}",
    )
    return {"results/size.md": text}
