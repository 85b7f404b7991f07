# SPDX-License-Identifier: Apache-2.0
"""Facts of partitions for tests of placing: written as a line of text, condensed, opened again.

A line shows logs as they lie, `LEGEND` says how.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from segproof.stretches.kafka.condensing import Condenser, Opener
from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import (
    ROW,
    Facts,
    LogFacts,
    NeedsBatches,
    Reach,
    Rows,
)
from segproof.stretches.kafka.placing import Placement

BYTES = 100
"""Bytes of a batch that states no other number, and of lost bytes."""
LEGEND = (
    (
        "10-19",
        f"a batch of {BYTES} bytes that states the offsets 10 to 19; batches side by side touch",
    ),
    ("0..17", "18 batches of one record each"),
    ("~", f"{BYTES} bytes that are no batch with a right checksum"),
    ("\\|", "a log ends, and the next one begins; its name is the first offset that it states"),
    ("=100", "the name of the log is 100"),
    (">", "a batch begins that the end of the log cuts off"),
    ("10-19?", "a search found the batch; to others sizes lead"),
    ("10-19!", "no broker loads a log with it"),
    ("10-19*", "its size or magic is wrong, and its checksum proves which is right"),
    ("10-19i", "an entry of the offset index states the same"),
    ("10-19x", "an entry states an offset for it that is missing before it"),
    ("10-19v1", "its magic is 1; without a number it is 2"),
    ("10-19e3", "its leader epoch is 3"),
    ("10-19p8:0", "producer 8 wrote it, with sequences from 0"),
    ("10-19m7", "its content has the number 7; without a number it is unlike all others"),
    ("10-19t900", "the broker wrote the timestamp 900, in milliseconds"),
    ("10-19w", "an entry leads into it, and states an offset that it does not have"),
    ("10-19k", "a record of it has no key"),
)
"""What a word on a line means."""
_WORD = re.compile(r"(?P<first>-?\d+)-(?P<last>-?\d+)(?P<marks>.*)")
_MARK = re.compile(r"[!*?ixkw]|[emtbv]-?\d+|p\d+:\d+")


def row_of(first: int, last: int, mark: int, size: int = BYTES) -> Rows:
    """Return the row of one batch of magic 2 that nothing is odd in."""
    row = np.zeros(1, ROW)
    row["end"], row["first"], row["last"], row["mark"] = size, first, last, mark
    row["offsets"] = max(last - first, 0) + 1
    row["batches"], row["records"], row["magic"] = 1, max(1, last - first + 1), 2
    row["least"] = max(1, size // max(1, last - first + 1))
    row["producer"] = row["sequence"] = row["producer_epoch"] = -1
    row["min_time"] = row["max_time"] = -1
    row["reach"], row["is_loadable"], row["is_movable"] = Reach.SIZES, True, True
    return row


def facts_of(line: str, *, named: int | None = None) -> Facts:
    """Return the facts of a line of text; `named` is the offset in the first log's name."""
    logs, rows = list[LogFacts](), list[Rows]()
    names = list[int]()
    for part in line.split("|"):
        at, own, torn, name = 0, list[Rows](), None, -1
        for number, word in enumerate(words_of(part)):
            if word[0] == "=":
                name = int(word[1:])
                continue
            if word in ("~", ">"):
                torn = at if word == ">" else torn
                at += BYTES
                continue
            row = _row_of_word(word, len(rows) + number + 1)
            row["start"], row["end"], row["log"] = at, at + row["end"], len(logs)
            at = int(row["end"][0])
            own.append(row)
        names.append(int(own[0]["first"][0]) if name < 0 else name)
        logs.append(LogFacts(names[-1], None, at, at, torn))
        rows += own
    if named is not None:
        names[0] = named
    following = [*names[1:], None]
    logs = [
        replace(log, base_offset=base, next_base_offset=after)
        for log, base, after in zip(logs, names, following, strict=True)
    ]
    return Facts(tuple(logs), np.concatenate(rows))


def _row_of_word(word: str, number: int) -> Rows:
    found = _WORD.fullmatch(word)
    assert found is not None, word
    first, last = int(found["first"]), int(found["last"])
    row = row_of(first, last, number)
    for mark in _MARK.findall(found["marks"]):
        match mark[0]:
            case "!":
                row["is_loadable"] = False
            case "*":
                row["is_mended"] = True
            case "?":
                row["reach"] = Reach.SEARCH
            case "i":
                row["is_indexed"], row["led"] = True, 1
            case "k":
                row["is_keyless"] = True
            case "w":
                row["misled"] = 1
            case "x":
                row["is_misindexed"] = True
            case "v":
                row["magic"] = int(mark[1:])
            case "e":
                row["epoch"] = int(mark[1:])
            case "p":
                producer, _, sequence = mark[1:].partition(":")
                row["producer"], row["producer_epoch"] = int(producer), 0
                row["sequence"] = int(sequence)
            case "m":
                row["mark"] = int(mark[1:])
            case "b":
                row["end"] = int(mark[1:])
            case "t":
                row["max_time"], row["is_append_time"] = int(mark[1:]), True
    return row


def words_of(line: str) -> list[str]:
    """Return the words of a line, with each batch as a word of its own."""
    found = list[str]()
    for word in line.split():
        first, dots, last = word.partition("..")
        found += [f"{one}-{one}" for one in range(int(first), int(last) + 1)] if dots else [word]
    return found


def told(facts: Facts, placement: Placement) -> list[str]:
    """Return what became of each row, in words."""
    words = list[str]()
    for row, fate in enumerate(placement.fates.tolist()):
        words.append(Fate(fate).name.lower())
        if fate == Fate.RESTORED:
            first = int(placement.firsts[row])
            words[-1] = f"{first}-{first + int(facts.rows['last'][row] - facts.rows['first'][row])}"
    return words


def condensed(facts: Facts, edge: int) -> Facts:
    """Return the facts with stretches, as framing makes them with other edges."""
    parts = list[Rows]()
    for number, log in enumerate(facts.logs):
        condenser = Condenser(log, edge)
        condenser.add(facts.rows[facts.rows["log"] == number])
        parts.append(condenser.rows())
    return replace(facts, rows=np.concatenate(parts))


def batches_of(rows: Rows, stretch: Any) -> Rows:
    """Return those of the rows of batches that a stretch stands for."""
    is_own = (rows["log"] == stretch["log"]) & (rows["start"] >= stretch["start"])
    own: Rows = rows[is_own & (rows["end"] <= stretch["end"])]
    return own


class Batches:
    """The batches of a partition, for placing to ask for."""

    def __init__(self, facts: Facts) -> None:
        self._rows = facts.rows
        self.asked = 0
        """How many times batches were asked for."""

    def open(self, facts: Facts, needs: NeedsBatches) -> Facts:
        """Return the facts with the rows that are asked for."""
        self.asked += 1
        rows, done = list[Rows](), 0
        for part in needs.parts:
            stretch = facts.rows[part.row : part.row + 1]
            own = batches_of(self._rows, stretch)
            opener = Opener(stretch, part)
            middle = len(own) // 2
            opener.add(own[:middle])  # in two blocks, as a scan yields them
            opener.add(own[middle:])
            assert len(opener.rows()) > 1, "an answer must tell more"
            rows += facts.rows[done : part.row], opener.rows()
            done = part.row + 1
        return replace(facts, rows=np.concatenate([*rows, facts.rows[done:]]))


def kept_batches(facts: Facts, whole: Facts, placement: Placement) -> list[tuple[int, int, int]]:
    """Return content, first and last offset of each kept batch, in order of the offsets.

    `whole` has a row for each batch; `facts` may have stretches.
    """
    found = list[tuple[int, int, int]]()
    for row in placement.kept.tolist():
        one = facts.rows[row]
        if one["batches"] == 1:
            shift = int(placement.firsts[row] - one["first"])
            found.append((int(one["mark"]), int(one["first"]) + shift, int(one["last"]) + shift))
            continue
        own = batches_of(whole.rows, one)
        found += zip(*(own[name].tolist() for name in ("mark", "first", "last")), strict=True)
    return found
