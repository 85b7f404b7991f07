# SPDX-License-Identifier: Apache-2.0
"""The page of the model's size, docs/results/size.md: code lines and branches, room by room."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

MODEL = Path(__file__).resolve().parents[2] / "model" / "segproof_model"

OPENING = """\
# Size of the code

Who should read this: everyone who asks how much code this is, or whether the model grows where it
should not. What is counted here is generated from the files; what was measured once says so.

A code line is one that is not blank, not a comment, and no part of a docstring; imports count. A
branch is an `if`, `elif`, `for`, `while`, `except` or conditional expression; `and`, `or` and
comprehensions are not counted. Lines and branches of functions are those of `language`, Kafka and
RocketMQ; the laws and `releases.py` count in code lines only. What the newest
release does stands in the files of the structures; what older releases and segproof do otherwise in
those whose names end in `_releases` and the like, and in `_deviations`.

## All packages

Measured once, in code lines. *Before* is commit 35fa827c. *Light*: the harness was put in rooms,
each argument of an operation was described once, checks, canaries, contracts and laws declared
themselves where they are written. *Tools*: operators got the damage map, `salvage`, `rebuild` of
whole directories, `dump` of every file, `ls`, `report`, SARIF and JUnit, `segproof.toml`, tiered
storage, and `scan`. *True words*: each verdict and hint holds on odd directories and damaged disks,
with its law, its situation and its regression. *Fates*: damage is read once as facts, and decided
once. *Rules*: draws with known truth found damage for which no rule was right; for each there is a
rule or a bound now, with its reason and an example.

The claims are counted beside the harness; the proofs are counted in the tests.

| package | before | light | tools | true words | fates | rules | goal |
| --- | --- | --- | --- | --- | --- | --- | --- |
| model | 14 479 | 14 319 | 14 440 | 15 807 | 15 807 | 15 815 | 12 000 |
| impl | 21 799 | 20 747 | 27 969 | 46 694 | 50 390 | 51 076 | 17 000 |
| harness | 21 055 | 17 745 | 22 916 | 28 398 | 30 217 | 30 232 | 13 000 |
| claims | 0 | 2 008 | 2 003 | 2 003 | 2 075 | 2 075 |  |
| spark_checks | 6 321 | 5 542 | 4 428 | 4 458 | 4 707 | 4 707 | 4 500 |
| tests | 34 420 | 37 084 | 43 873 | 66 118 | 67 292 | 67 708 | 22 000 |

*True words* grew most. Each odd name, folder and file that a person may meet has a sentence of its
own in `verifying`, and the tests have one incident for each. *Fates* was meant to make the code
smaller, and did not:

| what | code lines |
| --- | --- |
| `stretches`, new: facts, rules and their reasons, for both systems | 3 512 |
| draws with known truth, their judge, and examples of the rules | 1 922 |
| `inventory`, `wording`, `layouts`: mostly moved out of `verifying`, `reading` | 2 186 |
| `verifying`, without what moved down and without its own search | -2 343 |
| `salvaging` and `rebuilding`, without their own decisions | -247 |

What it replaced for Kafka is gone: pieces of logs, batches that can be restored, what moves back.
So it is for RocketMQ: `verify`, `salvage` and `rebuild` read a damaged commit log by its fates. Of
*Rules* 636 lines are in `stretches` and 322 in `salvaging`.

No goal is reached. The goals were set by eye, as two thirds of what there was. What was
said twice is gone: of runs of six or more equal lines 60 pairs are left, where there were 85. Half
of them are signatures and records that model and implementation share on purpose. The rest stays
for these reasons:

- **model**: 250 behaviours have a frame of six lines each, and imports take 1 400 lines. Laws
  decode bytes themselves, so that they judge the structure and do not repeat it.
- **impl**: a sixth are signatures, which twins keep in upstream's order. A tenth are refusals,
  which name law, path, expected and actual value. Single, bulk and compiled paths answer alike,
  and each is tuned for itself: two bulk searches merged were three lines longer. In `verifying`
  the words of the findings are the largest part, each said once.
- **harness**: descriptions of structures are tables of operations, weights, laws and states.
  Adapters call classes of 28 releases that differ in constructors and names.
- **spark_checks**: the settings with their reasons are data for the pages. `lookups` computes the
  right answers a second time on purpose.
- **tests**: most are one incident each. Examples that model and implementation share stand once
  for record batches and index files; for the other structures a merge gave few lines, since the
  examples are short.

## The model

*Before* is here the last commit on which one file said all releases, by flags: 41cbae63. The goal
is for the newest release.

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

The older model (the last commit with it: 41cbae63) and this one drew and ran the same histories of
50 operations from seeds that neither had seen, under `segproof` and each release: of each structure
20 000 histories and more, 1.0 million operations. All answers, kinds of error, accessors and files
were the same, but for one thing: in 0.10.2.2 the start of a log is the base of its first segment,
also after `maybe_increment_log_start_offset`, which only the model offers there. By that 215 of its
910 histories of whole logs differ; without this operation none does.

Four things were mended in this model after the older one had been let go, since the real classes
had shown them: bytes behind a gzip block, the place of an ended transaction in 2.4.1, transactions
that end late in a recovery up to 2.1.1, digits above U+FFFF in names. They are so rare that these
histories do not meet them; `docs/results/defects.md` tells of each.

## How fast it is replayed

Histories of 50 operations under `segproof`. The last commit with the older model and this one took
turns in one run on a busy machine; the figures are the CPU time before divided by that now, in 24
slices. Above 1 this one is faster. Two runs of one commit differ by up to 0.04.

| structure | all, beside the implementation | all, model alone | steps of the model |
| --- | --- | --- | --- |
{replays}

*All* is drawing, model, laws and comparison: what `segproof replay` does. The goal is 1.0, and 1.3
for whole logs (`partition-log`), which only their steps reach: to judge the laws takes as long as
before, and a tenth of all is one law, which loads each loaded log once more. Where a structure is
small its steps alone are slower than before, since each works on a draft; of a batch more laws are
judged at each state.
"""
REPLAYS = {
    "offset-index": ("1.06", "1.05", "0.78"),
    "time-index": ("1.07", "1.07", "0.72"),
    "transaction-index": ("1.10", "1.14", "0.71"),
    "record-batch": ("1.03", "0.99", "1.16"),
    "record-file": ("1.09", "1.04", "1.05"),
    "log-segment": ("1.05", "1.08", "1.15"),
    "partition-log": ("1.12", "1.19", "1.55"),
    "index-file": ("1.05", "1.06", "0.91"),
    "index-service": ("1.14", "1.14", "1.06"),
    "commit-log": ("1.05", "1.08", "1.05"),
    "consume-queue": ("1.46", "1.54", "1.56"),
    "store-checkpoint": ("1.08", "1.08", "0.80"),
    "message-store": ("1.24", "1.38", "1.33"),
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
        replays="\n".join(f"| {' | '.join((name, *ratios))} |" for name, ratios in REPLAYS.items()),
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
