# SPDX-License-Identifier: Apache-2.0
"""Examples of the rules that place the messages of a commit log: tests, and pictures of a page.

A file of an example has a name, the offset at which it begins, and words in the order of their
positions. Each word takes PART_BYTES, a file FILE_BYTES. LEGEND says what the words mean.
"""

from typing import NamedTuple

from segproof.stretches.rocketmq.desk import Fate
from segproof_tests.drawn_stretches import (
    FILE_BYTES,
    FIRST_MS,
    OTHERS,
    OURS,
    Drawn,
    DrawnFile,
    DrawnLog,
)

PART_BYTES = 128
LEGEND = (
    ("a", "a message that says the offset at which it lies"),
    ("a=640", "a message that says that it lies at offset 640"),
    ("a!", "a message that another broker stored"),
    ("a<", "a message that was stored before all others"),
    ("a+", "a message to whose offset, as it says it, a unit of a queue leads"),
    ("a-", "a message at whose offset, as it says it, units know another one"),
    ("~", "broken bytes"),
    ("[", "the begin of a broken message whose lengths agree: its body takes all up to `]`"),
    ("#", "a message that an earlier salvage put in the place of lost ones"),
    ("|", "a blank end, which takes the rest of the file"),
)


class Example(NamedTuple):
    """One picture: what lies in files, and what becomes of each message."""

    rule: str
    words: str
    files: tuple[tuple[int, str], ...]
    told: str
    """The fate of each message in the order of files and positions."""
    is_spared: bool = False
    """Whether it looks like one of the rule, and the rule leaves it to others."""


EXAMPLES = (
    Example("filler", "A saved store is saved again.", ((0, "a # b"),), "kept filler kept"),
    Example("inside", "A message carries a log of its own, and its body is broken.",
            ((0, "a [ ~ x=9000 y=9128 ~ ] b"),), "kept inside inside kept"),
    Example("inside", "A disk wrote a block, whole sectors, over a large message.",
            ((0, "a [ ~ ~ ~ f=1152 g=1280 ] b"),), "kept moved moved kept", is_spared=True),
    Example("file name", "Two files have each other's names.",
            ((0, "c=2048 d=2176 |"), (2048, "a=0 b=128")), "moved moved moved moved"),
    Example("file name", "Two files of one message say each other's names.",
            ((0, "a |"), (2048, "c=4096 |"), (4096, "b=2048 |"), (6144, "d")),
            "kept moved moved kept"),
    Example("file name", "The only file of a log has a wrong name.",
            ((1, "a=4096 b=4224 ~ c=4480"),), "moved moved moved"),
    Example("file name", "The only message of a file has a wrong bit in its offset.",
            ((0, "a b |"), (2048, "c=6144")), "kept kept restored", is_spared=True),
    Example("file name", "Another broker's messages outnumber the one that agrees with the name.",
            ((0, "a b |"), (2048, "x=4096! y=4224! z=4352! c")), "kept kept aside aside aside kept",
            is_spared=True),
    Example("other store", "Units know other messages in the second file, and those of the first.",
            ((0, "a+ b+ c+ |"), (2048, "d- e- f-")), "kept kept kept aside aside aside"),
    Example("other store", "Units know other messages everywhere: the queues are another store's.",
            ((0, "a- b- c- |"), (2048, "d- e- f-")), "kept kept kept kept kept kept",
            is_spared=True),
    Example("other log", "A block of another broker's log, which says the same offsets.",
            ((0, "a b ~ c! d! ~ e f"),), "kept kept aside aside kept kept"),
    Example("other log", "A block of a log of the same broker: units know other messages there.",
            ((0, "a+ b+ ~ c- d- ~ e+ f+"),), "kept kept aside aside kept kept"),
    Example("other log", "A block of another broker's log at the end, with a number that is taken.",
            ((0, "a+ b ~ b! d!"),), "kept kept aside aside"),
    Example("other log", "The broker got another address, and what it stored next is broken.",
            ((0, "a+ b ~ c! d!"),), "kept kept kept kept", is_spared=True),
    Example("other log", "Units know other messages everywhere: the queues are another store's.",
            ((0, "a- b- ~ c- d- ~ e- f-"),), "kept kept kept kept kept kept", is_spared=True),
    Example("other log", "A broker had another address for a while: nothing is broken.",
            ((0, "a b c! d! e f"),), "kept kept kept kept kept kept", is_spared=True),
    Example("in place", "Whatever is broken around it.", ((0, "a ~ b ~ ~ c"),), "kept kept kept"),
    Example("in place", "It leaves no room for the blank end of its file.",
            ((0, "a ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ b"),), "kept aside", is_spared=True),
    Example("cut off", "It was cut off by a recovery, and the log was written again before it.",
            ((0, "a b | x<"), (2048, "c")), "kept kept cut kept"),
    Example("cut off", "It is as young as those before the blank end, which is damage.",
            ((0, "a b | x"), (2048, "c")), "kept kept kept kept", is_spared=True),
    Example("offset", "One bit of its offset is wrong.", ((0, "a b=32896 c"),),
            "kept restored kept"),
    Example("offset", "It is alone in its file, and another file begins where it says.",
            ((0, "a |"), (2048, "b |"), (4096, "c=2048 |"), (6144, "d")),
            "kept kept aside kept", is_spared=True),
    Example("offset", "A disk wrote a sector to a wrong place, and it is missing where it belongs.",
            ((0, "a b f=3840 d |"), (2048, "e")), "kept kept moved kept kept", is_spared=True),
    Example("offset", "Two messages changed places, and the offset of each is a bit from there.",
            ((0, "b=128 a=0 c"),), "moved moved kept", is_spared=True),
    Example("copy", "A block was written twice.", ((0, "a b ~ a=0 b=128 ~ c"),),
            "kept kept copy copy kept"),
    Example("copy", "Another message says an offset that is taken.",
            ((0, "a b ~ x=0 ~ c"),), "kept kept aside kept", is_spared=True),
    Example("moved", "Two messages lie elsewhere, and their place is free.",
            ((0, "a ~ ~ b e=128 f=256 ~ g"),), "kept kept moved moved kept"),
    Example("moved", "Bytes were put in before the only message of a file.",
            ((4096, "~ a=4096"),), "moved"),
    Example("moved", "Bytes were put in, and a message between those that were moved is broken.",
            ((0, "a |"), (2048, "~ ~ ~ b=2048 ~ c=2304+ d=2432 e=2560")),
            "kept moved moved moved moved"),
    Example("moved", "Two messages changed places, and nothing else of the log is left.",
            ((0, "b=128 a=0"),), "moved moved"),
    Example("moved", "Of two blocks that say the same places, units know the second one.",
            ((0, "a ~ ~ b ~ x=128 y=256 ~ e=128+ f=256+ ~ g"),),
            "kept kept aside aside moved moved kept"),
    Example("moved", "Units know other messages where they say.",
            ((0, "a ~ ~ b e=128- f=256- ~ g"),), "kept kept aside aside kept", is_spared=True),
    Example("moved", "They say offsets before the first file, which expired.",
            ((4096, "a ~ e=128 f=256 ~ g"),), "kept aside aside kept", is_spared=True),
    Example("room", "It would leave a gap of 64 bytes, in which no message has room.",
            ((0, "a ~ ~ ~ ~ b e=192 f=320 ~ g"),), "kept kept aside moved kept"),
    Example("room", "A gap of 128 bytes may have been a message.", ((0, "a ~ b"),), "kept kept",
            is_spared=True),
    Example("nowhere", "One bit of its offset says a place in the zeros behind the end of the log.",
            ((0, "a ~ b=1280"),), "kept aside"),
    Example("nowhere", "Alone, and far from where it says.", ((0, "a ~ b=777777777 ~ c"),),
            "kept aside kept"),
)  # fmt: skip


def log_of(example: Example) -> DrawnLog:
    """Return the log of an example."""
    files, messages = list[DrawnFile](), list[Drawn]()
    units = list[tuple[int, int, int, int]]()
    names: dict[str, int] = {}
    for number, (begin, line) in enumerate(example.files):
        words = line.split()
        blank = words.index("|") * PART_BYTES if "|" in words else None
        torn, used = list[tuple[int, int]](), PART_BYTES * len(words)
        for at, word in enumerate(words):
            start = at * PART_BYTES
            if word == "[":
                torn.append((start, PART_BYTES * (words.index("]") + 1)))
            if word in ("~", "|", "[", "]"):
                continue
            name = names.setdefault(word[0], len(names))
            claim = word[1:].strip("=!<+-")
            said = int(claim) if claim else begin + start
            place = len(messages)
            messages.append(Drawn(
                name, number, start, PART_BYTES, said, FIRST_MS + 1000 * place * ("<" not in word),
                100 + name, 0, OTHERS if "!" in word else OURS, is_filler=word == "#",
            ))  # fmt: skip
            if word[-1] in "+-":
                is_other = word[-1] == "-"
                queue = 999 if is_other else 100 + name
                units.append((said, PART_BYTES + is_other, queue, 0))
        is_blank = blank is not None
        files.append(DrawnFile(begin, used if blank is None else blank, is_blank, tuple(torn)))
    assert all(one.used <= FILE_BYTES for one in files)
    return DrawnLog(tuple(files), tuple(messages), tuple(units))


def told_fates(fates: list[int]) -> str:
    """Return fates as an example tells them."""
    return " ".join(Fate(fate).name.lower() for fate in fates)
