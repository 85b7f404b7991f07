# SPDX-License-Identifier: Apache-2.0
"""The states of a segment and of a log: docs/explanation/states.md and its two pictures.

A picture and the table below it are made from the same transitions. Only where a box lies is said
here a second time.
"""

import re
from itertools import groupby
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from law_links import law_link

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_segment import LogSegment

Point = tuple[int, int]
LAW = re.compile(r"[A-Z]+-[0-9]")


class Transition(NamedTuple):
    """What leads from one state to another, or is done in one."""

    source: str
    target: str
    operations: tuple[str, ...]
    """Names of methods; what is in quotation marks is no method."""
    laws: str
    """`SEG-1-10 LOG-4` is SEG-1 to SEG-10 and LOG-4."""
    meaning: str


class Box(NamedTuple):
    """Where a state is drawn."""

    x: int
    y: int
    width: int
    height: int
    note: tuple[str, ...] = ()
    is_frame: bool = False


class Arrow(NamedTuple):
    """How one way from state to state is drawn, and where its label begins."""

    points: tuple[Point, ...]
    label: Point
    anchor: str = "middle"
    text: tuple[str, ...] | None = None
    """Other words than the operations and laws of the transition."""


SEGMENT = (
    Transition("not open", "active", ('"opening"',), "FILE-1 FILE-4 LAZY-1 SEG-49",
               "creates the log, or takes it as it is; the indexes are not opened yet"),
    Transition("active", "active", ("append",), "SEG-1-10",
               "writes batches behind the others; an index entry now and then"),
    Transition("active", "active", ("append_from_file",), "SEG-42",
               "the same, from another log, as far as the offsets fit"),
    Transition("active", "active", ("update_txn_index",), "FILE-3 TXNIDX-3",
               "an aborted transaction gets its entry; the first one creates the file"),
    Transition("active", "active", ("read", "translate_offset"), "SEG-12-18",
               "changes nothing but that indexes are opened"),
    Transition("active", "active", ("find_offset_by_timestamp",), "SEG-39",
               "changes nothing but that indexes are opened"),
    Transition("active", "active", ("flush",), "SEG-48",
               "the bytes are on the device; creates indexes that were not opened"),
    Transition("active", "active", ("truncate_to",), "SEG-31-34",
               "removes batches from an offset on; the indexes get their full size back"),
    Transition("active", "active", ("recover",), "SEG-20-30 PROD-15",
               "keeps the valid beginning; rebuilds every index and trims it"),
    Transition("active", "inactive", ("should_roll", "on_become_inactive_segment"), "SEG-36-38",
               "the last time entry is written, log and indexes are cut to what is in them"),
    Transition("inactive", "inactive", ("read", "recover"), "SEG-12-30",
               "as in the active segment; nothing is appended any more"),
    Transition("inactive", "active", ("truncate_to",), "SEG-32 LOG-13",
               "a log that is cut in front of its last segment goes on in this one"),
    Transition("not open", ".cleaned", ('"opening"', "append_from_file"), "SEG-42 LOG-19",
               "a part of a segment that is being split, not complete yet"),
    Transition(".cleaned", ".swap", ("change_file_suffixes",), "SEG-46 LOG-19",
               "every part is complete and durable"),
    Transition(".swap", "inactive", ("change_file_suffixes",), "SEG-46 LOG-19 LOAD-2-3",
               "the part stands where the old segment stood; loading finishes this after a crash"),
    Transition("open", "closed", ("close", "close_handlers"), "SEG-44-45 LAZY-5",
               "no file is changed: the log manager has written and cut the active one before"),
    Transition("closed", "not open", ('"another open"',), "SEG-49 ABSIDX-4",
               "what was not written down is not known: a largest timestamp without its entry"),
    Transition("open", ".deleted", ("change_file_suffixes",), "SEG-46 LOG-13 LOG-17",
               "retention, truncation or a split took it out of the log"),
    Transition(".deleted", "gone", ("delete_if_exists",), "SEG-47 LOAD-1",
               "when the delay is over, or when the log is loaded the next time"),
    Transition(".cleaned", "gone", ('"loading"',), "LOAD-1",
               "a split that did not end is forgotten; the old segment is still there"),
    Transition(".swap", "gone", ('"loading"',), "LOAD-2",
               "the same, where a `.cleaned` part has this base offset or a lower one"),
)  # fmt: skip
SEGMENT_BOXES = {
    "open": Box(385, 24, 365, 446, is_frame=True),
    "not open": Box(24, 40, 206, 72, ("no object; the files", "may exist already")),
    "active": Box(400, 56, 336, 210),
    "inactive": Box(400, 382, 336, 70),
    ".cleaned": Box(24, 190, 206, 54, ("being written by a split",)),
    ".swap": Box(24, 352, 206, 54, ("complete, not in place",)),
    "closed": Box(24, 466, 206, 72, ("segproof refuses any use;", "Kafka's unmapped indexes do")),
    ".deleted": Box(400, 580, 336, 54, ("out of the log, waits for its removal",)),
    "gone": Box(24, 580, 206, 54, ("no file is left",)),
}
SEGMENT_ARROWS = {
    ("not open", "active"): Arrow(((230, 76), (400, 76)), (308, 66)),
    ("active", "inactive"): Arrow(((606, 266), (606, 382)), (598, 312), "end"),
    ("inactive", "active"): Arrow(((722, 382), (722, 266)), (714, 312), "end"),
    ("not open", ".cleaned"): Arrow(((127, 112), (127, 190)), (135, 142), "start"),
    (".cleaned", ".swap"): Arrow(((127, 244), (127, 352)), (135, 294), "start"),
    (".swap", "inactive"): Arrow(((230, 396), (400, 396)), (308, 388)),
    ("open", "closed"): Arrow(((430, 470), (430, 502), (230, 502)), (330, 494)),
    ("closed", "not open"): Arrow(((24, 502), (10, 502), (10, 76), (24, 76)), (16, 170), "start",
                                  ()),
    ("open", ".deleted"): Arrow(((570, 470), (570, 580)), (578, 520), "start"),
    (".deleted", "gone"): Arrow(((400, 607), (230, 607)), (316, 597)),
}  # fmt: skip

STEPS = (
    ("epochs and snapshots are read", "EPOCH-1 PROD-3"),
    ("leftovers are removed", "LOAD-1-2 LOAD-18"),
    ("complete swaps take their places", "LOAD-2-3"),
    ("every segment is opened", "LOAD-4-6 LOAD-10"),
    ("not clean: recovery", "LOAD-7-9 LOAD-17"),
    ("the end of the log is found", "LOAD-12-13"),
    ("indexes and epochs are fitted", "LOAD-14-15"),
    ("producers are rebuilt", "PROD-13-14"),
)
"""The steps of loading, in order, with the laws of each."""
MEANINGS = (
    "an entry that conflicts with a later one is put in order; a snapshot's name is its offset",
    "`.deleted` and `.cleaned` files, and `.swap` files from the first `.cleaned` offset on",
    "files in the range of the `.swap` files are removed, then those are renamed",
    "an index without a log is removed; a segment that lacks its offset index is recovered",
    "from the segment with the recovery point on; the first that loses bytes is the last one kept",
    "an end below the log's start empties the log; a log without segments gets one",
    "the active segment's indexes get their full size; epochs outside of the log go",
    "from the newest snapshot and what the log holds behind it",
)
LOG = (
    Transition("directory", "loading", ('"opening"',), "LOAD-16",
               "the eight steps below, in order"),
    *(
        Transition("loading", "loading", (f'"{number}: {title}"',), laws, meaning)
        for number, ((title, laws), meaning) in enumerate(zip(STEPS, MEANINGS, strict=True), 1)
    ),
    Transition("loading", "open", ('"all steps done"',), "LOAD-13",
               "the high watermark begins at the start of the log"),
    Transition("open", "appending", ("append_as_leader", "append_as_follower"),
               "LOG-4 LOG-9-10 LOG-21-22 PROD-7-11",
               "checks, epochs, maybe a roll, the bytes, the log end, producers, transactions"),
    Transition("appending", "rolling", ("roll",), "LOG-11-12 PROD-6",
               "the active segment becomes inactive; a new one, and a snapshot at its base"),
    Transition("open", "retention", ("delete_old_segments", "delete_pending_files"),
               "LOG-17-18", "a prefix of the segments goes, below the high watermark"),
    Transition("retention", "rolling", ("roll",), "LOG-17",
               "where every segment goes, a new one is begun before"),
    Transition("open", "truncating", ("truncate_to", "truncate_fully_and_start_at"),
               "LOG-13-14 EPOCH-8", "later segments go, the active one is cut, producers reloaded"),
    Transition("open", "splitting", ("split_overflowed_segment",), "LOG-19-20",
               "segments that their indexes can hold take the place of one"),
    Transition("open", "reading", ("read", "fetch_offset_by_timestamp"), "LOG-1 LOG-5-8 LOG-15-16",
               "changes nothing that a caller sees"),
    Transition("open", "open", ("flush", "maybe_increment_log_start_offset"), "EPOCH-9 LOAD-17",
               "the recovery point follows what is durable; the start of the log moves up"),
    Transition("open", "closed, clean", ("close", '"the marker"'), "LOAD-10-11 LOAD-13",
               "a snapshot, then the segments are closed; the log manager writes the marker last"),
    Transition("open", "closed, not clean", ('"a crash"', "close_handlers"), "LOAD-7-9 LOAD-17",
               "files as they were; the next loading recovers from the recovery point on"),
    Transition("closed, clean", "directory", ('"another start"',), "LOAD-10-11",
               "step 5 is left out; the marker is removed first"),
    Transition("closed, not clean", "directory", ('"another start"',), "LOAD-7",
               "every step"),
    Transition("open", "gone", ("delete",), "", "every file of the log is removed"),
)  # fmt: skip
LOG_BOXES = {
    "loading": Box(24, 92, 326, 552, is_frame=True),
    "open": Box(400, 24, 350, 470, is_frame=True),
    "directory": Box(24, 24, 326, 38),
    **{f"step {number}": Box(36, 118 + 65 * (number - 1), 302, 52) for number in range(1, 9)},
    "appending": Box(411, 50, 328, 52),
    "rolling": Box(411, 128, 328, 52),
    "retention": Box(411, 206, 328, 52),
    "truncating": Box(411, 276, 328, 52),
    "splitting": Box(411, 346, 328, 52),
    "reading": Box(411, 416, 328, 52),
    "closed, clean": Box(400, 560, 168, 38),
    "closed, not clean": Box(582, 560, 168, 38),
}
LOG_ARROWS = {
    ("directory", "loading"): Arrow(((187, 62), (187, 92)), (195, 81), "start", ("opening",)),
    **{
        (f"step {number}", f"step {number + 1}"): Arrow(
            ((187, 105 + 65 * number), (187, 118 + 65 * number)), (0, 0), text=()
        )
        for number in range(1, 8)
    },
    ("loading", "open"): Arrow(((350, 600), (375, 600), (375, 40), (400, 40)), (0, 0), text=()),
    ("appending", "rolling"): Arrow(
        ((480, 102), (480, 128)), (490, 119), "start", ("should_roll: SEG-37",)
    ),
    ("retention", "rolling"): Arrow(
        ((480, 206), (480, 180)), (490, 197), "start", ("if all segments go: LOG-17",)
    ),
    ("open", "closed, clean"): Arrow(
        ((440, 494), (440, 560)), (448, 516), "start", ("close, then", "the marker", "LOAD-11")
    ),
    ("open", "closed, not clean"): Arrow(
        ((622, 494), (622, 560)), (630, 516), "start", ("a crash, or", "no marker", "LOAD-7")
    ),
    ("closed, clean", "directory"): Arrow(
        ((484, 598), (484, 662), (13, 662), (13, 38), (24, 38)), (492, 622), "start",
        ("without step 5", "LOAD-10"),
    ),
    ("closed, not clean", "directory"): Arrow(
        ((666, 598), (666, 676), (6, 676), (6, 50), (24, 50)), (674, 622), "start",
        ("every step", "LOAD-17"),
    ),
}  # fmt: skip

DOES = ("appending", "rolling", "retention", "truncating", "splitting", "reading")
"""The states inside of an open log."""

STYLE = """\
  <style>
    text { font-family: system-ui, sans-serif; font-size: 12.5px; fill: #1b2733; }
    .ground { fill: #ffffff; } .box { fill: #eef3f9; stroke: #3d5a80; stroke-width: 1.4; }
    .frame { fill: none; stroke: #3d5a80; stroke-width: 1.2; stroke-dasharray: 6 4; }
    .title { font-weight: 600; font-size: 13.5px; }
    .code { font-family: monospace; font-size: 12px; }
    .law { fill: #8a3a00; } .arrow { fill: none; stroke: #3d5a80; stroke-width: 1.6; }
    .head { fill: #3d5a80; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e4eaf1; } .ground { fill: #14181d; } .box { fill: #1f2a36; stroke: #8fb3de; }
      .frame, .arrow { stroke: #8fb3de; } .head { fill: #8fb3de; } .law { fill: #ffb27a; }
    }
  </style>
"""


def short(laws: str) -> list[str]:
    """Return the ids as a picture has room for them, one text for each area.

    >>> short("SEG-1-3 SEG-8-9 LOG-4")
    ['SEG-1 to 3, 8, 9', 'LOG-4']
    """
    found = []
    for area, items in groupby(laws.split(), key=lambda item: item.split("-")[0]):
        rows = [[int(number) for number in item.split("-")[1:]] for item in items]
        # Two ids in a row are no range.
        numbers = [(", " if row[-1] - row[0] == 1 else " to ").join(map(str, row)) for row in rows]
        found.append(f"{area}-" + ", ".join(numbers))
    return found


def check_operations(transitions: tuple[Transition, ...], structure: Any) -> None:
    """Raise AttributeError for an operation that the model's class has not."""
    for transition in transitions:
        for name in transition.operations:
            if not name.startswith('"'):
                getattr(structure, name)


def text(x: int, y: int, words: str, style: str = "", anchor: str = "start") -> str:
    """Return one line of text."""
    return (
        f'  <text x="{x}" y="{y}" text-anchor="{anchor}" class="{style}">{escape(words)}</text>\n'
    )


def box_svg(
    name: str, box: Box, lines: list[tuple[str, str]], laws: str = "", note_style: str = ""
) -> str:
    """Return a box with its title and laws, its note, and lines of an operation and its laws."""
    style = "frame" if box.is_frame else "box"
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
    right, top = box.x + box.width - 12, box.y + (16 if box.is_frame else 22)
    parts = [
        f'  <rect {place} rx="6" class="{style}"/>\n',
        text(box.x + 12, top, name, "title"),
    ]
    if laws:
        parts.append(text(right, top, laws, "law", "end"))
    for number, note in enumerate(box.note, 1):
        parts.append(text(box.x + 12, box.y + 22 + 18 * number, note, note_style))
    for number, (operation, its_laws) in enumerate(lines, 1):
        y = box.y + 25 + 20 * number
        parts.append(text(box.x + 12, y, operation, "code"))
        parts.append(text(right, y, its_laws, "law", "end"))
    return "".join(parts)


def arrow_svg(arrow: Arrow, label: tuple[str, ...]) -> str:
    """Return a line with a head, and its label: words first, then laws."""
    points = " ".join(f"{x},{y}" for x, y in arrow.points)
    parts = [f'  <polyline points="{points}" class="arrow" marker-end="url(#head)"/>\n']
    laws = [words for words in label if LAW.match(words)]
    names = [words for words in label if words not in laws]
    x, y = arrow.label
    if arrow.anchor == "middle":
        # Above a line that runs across stand the names, below it the laws.
        y -= 16 * (len(names) - 1)
    for words in names:
        parts.append(text(x, y, words, "code" if arrow.text is None else "", arrow.anchor))
        y += 16
    y += 10 if arrow.anchor == "middle" else 0
    for words in laws:
        parts.append(text(x, y, words, "law", arrow.anchor))
        y += 16
    return "".join(parts)


def label_of(transition: Transition) -> tuple[str, ...]:
    """Return the lines beside an arrow: two short laws share one."""
    laws = short(transition.laws)
    lines = [", ".join(laws[:2]), *laws[2:]]
    names = [name.strip('"') for name in transition.operations]
    return (*names, *(laws if len(lines[0]) > 17 else lines))


def svg(title: str, height: int, body: str) -> str:
    """Return a picture. Its ground is opaque, so that it is readable on pages of any colour."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" '
        f'height="{height}" role="img">\n  <title>{escape(title)}</title>\n{STYLE}'
        '  <defs><marker id="head" markerWidth="9" markerHeight="9" refX="8" refY="4.5" '
        'orient="auto" markerUnits="userSpaceOnUse"><path d="M0,0 L9,4.5 L0,9 z" class="head"/>'
        "</marker></defs>\n"
        f'  <rect width="760" height="{height}" rx="8" class="ground"/>\n{body}</svg>\n'
    )


def segment_svg() -> str:
    """Return the picture of a segment's states."""
    parts = []
    for name, box in SEGMENT_BOXES.items():
        inside = [one for one in SEGMENT if one.source == one.target == name]
        lines = [(", ".join(one.operations), ", ".join(short(one.laws))) for one in inside]
        parts.append(box_svg(name, box, lines))
    by_way = {(one.source, one.target): one for one in SEGMENT}
    for way, arrow in SEGMENT_ARROWS.items():
        label = label_of(by_way[way]) if arrow.text is None else arrow.text
        parts.append(arrow_svg(arrow, label))
    return svg("The states of a segment", 650, "".join(parts))


def log_svg() -> str:
    """Return the picture of a log's states."""
    inside = {one.target: one for one in reversed(LOG) if one.target != one.source}
    parts = []
    for name, box in LOG_BOXES.items():
        title, laws = name, ""
        if name.startswith("step "):
            words, laws = STEPS[int(name.removeprefix("step ")) - 1]
            title, box = name.removeprefix("step "), box._replace(note=(words,))
        elif name in DOES:
            laws = inside[name].laws
            box = box._replace(note=(", ".join(inside[name].operations),))
        style = "code" if name in DOES else ""
        parts.append(box_svg(title, box, [], ", ".join(short(laws)), style))
    parts += [arrow_svg(arrow, arrow.text or ()) for arrow in LOG_ARROWS.values()]
    return svg("The states of a log", 690, "".join(parts))


def operations_text(transition: Transition) -> str:
    """Return the operations for a table: methods as code, the rest as words."""
    return ", ".join(
        name.strip('"') if name.startswith('"') else f"`{name}`" for name in transition.operations
    )


def law_text(laws: str) -> str:
    """Return references to the laws, or to the first and last of a row of them."""
    parts = []
    for item in laws.split():
        area, *numbers = item.split("-")
        is_pair = len(numbers) == 2 and int(numbers[1]) - int(numbers[0]) == 1
        between = ", " if is_pair else " to "
        parts.append(between.join(law_link(f"{area}-{number}") for number in numbers))
    return ", ".join(parts)


def table(transitions: tuple[Transition, ...]) -> str:
    """Return the table of transitions."""
    lines = ["| from | by | to | what happens | laws |", "| --- | --- | --- | --- | --- |"]
    for one in transitions:
        target = "the same" if one.source == one.target else one.target
        lines.append(
            f"| {one.source} | {operations_text(one)} | {target} | {one.meaning} "
            f"| {law_text(one.laws)} |"
        )
    return "\n".join(lines) + "\n"


PAGE = """\
# States of a segment and of a log

Who should read this: everyone who implements a log, or asks what happens in which order. Each law
is a link to its sentence. How the model says all this: [reading the model](reading-the-model.md).
The page and its pictures are made from one table.

## A segment

A box lists what may be done without leaving the state. The dashed frame is every open state.

```{image} ../_static/segment_states.svg
:alt: The states of a segment and the operations between them; the table below says the same
```

"""
LOG_PART = """\

A segment is *active* if it is the last one of its log. That is the log's business: the methods of a
segment are the same in both states, but only the last one has room left in its indexes.

## A log

Loading goes through its steps from top to bottom. An open log has one
writer, and does one of these at a time; readers go on beside it.

```{image} ../_static/log_states.svg
:alt: How a log is loaded, what it does, and how it ends; the table below says the same
```

"""


def pages() -> dict[str, str]:
    """Return the page and its pictures by path."""
    check_operations(SEGMENT, LogSegment)
    check_operations(LOG, PartitionLog)
    return {
        "explanation/states.md": PAGE + table(SEGMENT) + LOG_PART + table(LOG),
        "_static/segment_states.svg": segment_svg(),
        "_static/log_states.svg": log_svg(),
    }
