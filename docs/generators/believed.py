# SPDX-License-Identifier: Apache-2.0
"""The page of the rules of placing, with the examples that test them."""

from collections.abc import Iterator
from itertools import groupby

from segproof.salvaging.placed_logs import PROOF_BATCHES
from segproof.stretches.kafka import moving, rules, strangers
from segproof.stretches.kafka.facts import EDGE_BATCHES
from segproof_tests.partition_facts import LEGEND, words_of
from segproof_tests.placing_examples import EXAMPLES, Example

HEAD = """\
# What is believed of a damaged log, and why

Who should read this: an operator who asks why a batch was kept, moved or set aside, and everyone
who changes these rules. The rules and the examples that test them are the source of this page.

A damaged disk leaves batches with right checksums at wrong places. The checksum of a batch covers
its records, its producer and its timestamps. It covers neither the base offset nor the leader
epoch. So a batch is known to be a batch; whether it belongs where it lies has to be decided. The
table below decides it for a whole partition at once, from facts alone: positions, offsets, epochs,
producers and checksums. The first rule that applies to a batch decides it.

`salvage` decides by this table for a whole partition, and `verify` counts the lost offsets of a
damaged partition in the same way. The words of `verify` about one log, `lookup`, `rebuild
--cut-tail` and the file map decide by it for this log alone, so they can tell less of a batch that
another log lost. What is set aside is not lost: salvage writes it into a file of its own.

"""
NAMES = f"""\
## Which log is which

The name of a log is the offset that it begins with, and no checksum covers a name. So before the
rules `salvage` decides which name each log has, by these steps:

1. A log keeps its name if its first batch begins at that offset or later, and before the name of
   the next log. It also keeps it if it begins below its name, and the log before it ends there:
   then the block at its beginning is not its own. It keeps it too if its second batch begins where
   the name and the size of the first one say, or if most of its bytes have offsets between its
   name and the next one, although its first batch has later ones. Where the contents have the
   order of the names, all names stay.
2. The other logs get the names that they have together, in the order of their contents. A name
   above the contents becomes the first offset of the log.
3. If contents overlap then, by more than lone last batches, each of them gets its first offset as
   its name. A log of fewer than {PROOF_BATCHES} batches does so only if exactly its offsets are
   missing between two other logs, or before all of them, and the name differs from the first
   offset in more than one bit: one wrong bit may be in the batch.
4. A log without a sound batch gets the one name that is left over, if another log begins with the
   name that it has.
5. If contents overlap then too, all names stay.
6. After all batches are read: a log gets the offset with which it begins as its name, if the log
   before ends right before that offset. It also gets it if the log before ends after the name and
   before that offset, unless the index of the log was made under the name.

What is read of one log alone takes the name of the next log as its limit, unless most of its
batches lie after that name.

"""
UNTOLD = f"""
## What nothing tells

No rule can decide these, and no other reader of the same bytes can:

- A block of another topic whose offsets fit where it lies, and whose magic, leader epochs,
  producers and times contradict nothing. It is kept.
- Of two blocks that contradict each other the foreign one, if it has more bytes, and sizes lead to
  it as they lead to the other one. The larger one is believed.
- The base offset of a last batch after a hole, or of any batch of a compacted log that leaves
  offsets out, if no index entry states it. What the batch states is believed.
- Whether a compacted topic left offsets out before a block, or the block is another topic's.
- Which one is right, if an index entry states a greater offset than its batch, and one bit is the
  difference: no checksum covers either of them. What the batch states is believed.
- Whether offsets that are missing between two batches that touch were lost before, if they are
  fewer than {rules.ODD_JUMP_MIN}; or one of the two is foreign, or has a wrong offset. An earlier
  salvage leaves such gaps. Both are kept.
- Whether a lone block that fits into a hole of another log is the log's own, or another topic's
  that says the same offsets. It is moved.
- How far a partition went after its last whole batch, if no index, snapshot or checkpoint states
  it. The count of lost offsets is "at least" then. An entry before that batch does not state it,
  nor does an index whose entries in the log are wrong more often than right: it is another log's.
- A wrong bit in the last entry of a time index, if the log is torn before the batch of that entry.
- Whose batches stayed, if of two that go on with each other one is kept and one is set aside; and
  what a log held that keeps batches before its name. The count is "at least" then too.
- Whether the offsets between two logs, or before the first batch, are lost in a damaged partition
  that leaves none out elsewhere. They are counted as "not known".
"""
SPARED = "\nThese cases look alike, but the rule leaves them to other rules.\n"
NUMBERS = {
    "PLACE-3, weight of a batch that sizes lead to": (
        f"{rules.FIRM:,} times that of one that a search found",
        "a log has less than 2^31 bytes, and a batch weighs 5 at most",
    ),
    "PLACE-3, weight of a batch": (
        f"{rules.WEIGHT}, and 1 for each neighbour that leaves no offset out",
        "two batches that go on never outweigh two that do not, and one more",
    ),
    "PLACE-5, batches compared on either side": (
        EDGE_BATCHES,
        "with several producers at work, mostly one of eight batches is of the same one",
    ),
    "PLACE-5, how far the clocks of brokers are apart": (
        f"{strangers.CLOCKS_MS:,} ms",
        "a day: a wrong time zone makes 14 hours",
    ),
    "PLACE-8, the sectors of a disk": (
        f"{moving.SECTOR_BYTES} bytes",
        "a disk writes a block to a wrong place at a multiple of this",
    ),
    "PLACE-9, batches that leave no offset out": (
        rules.DENSE_BATCHES_MIN,
        "compaction leaves offsets out here and there: two prove little; 100 ask no short log",
    ),
    "PLACE-9, offsets that no log has room for": (
        f"{rules.FAR_JUMP_MIN:,}",
        "a log has less than 2^31 bytes, and 8 bytes are a small record, compressed",
    ),
    "PLACE-9, offsets that a last batch leaves out": (
        rules.ODD_JUMP_MIN,
        "a gap of 1 or 2 is one bit wide half of the time, one of 64 to 127 in one of 128 cases",
    ),
}


def pages() -> dict[str, str]:
    """Return the page by its path below docs/."""
    return {
        "explanation/believed.md": HEAD
        + NAMES
        + _legend()
        + "".join(_rules())
        + UNTOLD
        + _numbers()
    }


def _legend() -> str:
    rows = "".join(f"| `{mark}` | {meaning} |\n" for mark, meaning in LEGEND)
    return f"## How to read the pictures\n\n| on disk | meaning |\n| --- | --- |\n{rows}\n"


def _rules() -> Iterator[str]:
    examples = {key: list(own) for key, own in groupby(EXAMPLES, lambda one: one.rule)}
    yield "## The rules\n"
    for rule in rules.RULES:
        yield f"\n### {rule.rule_id}: {rule.name}\n\n{rule.why}\n\n{rule.spares}\n"
        own = sorted(examples[rule.rule_id], key=lambda one: one.is_spared)
        for is_spared, alike in groupby(own, lambda one: one.is_spared):
            yield SPARED if is_spared else ""
            yield from (f"\n{one.words}\n\n{_picture(one)}" for one in alike)


def _picture(example: Example) -> str:
    """Return a line of what is on disk, and below it what becomes of each batch."""
    above, below = list[str](), list[str]()
    fates = iter(example.told.split())
    for word in example.line.split():
        is_batch = word[0] not in "~>|="
        fate = [next(fates) for _ in words_of(word)][0] if is_batch else ""  # noqa: RUF015
        width = max(len(word), len(fate))
        above.append(word.ljust(width))
        below.append(fate.ljust(width))
    lines = "on disk   " + "  ".join(above), "believed  " + "  ".join(below)
    return "```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```\n"


def _numbers() -> str:
    rows = "".join(f"| {name} | {value} | {why} |\n" for name, (value, why) in NUMBERS.items())
    return f"\n## Numbers\n\n| what | value | why this number |\n| --- | --- | --- |\n{rows}"
