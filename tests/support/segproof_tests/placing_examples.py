# SPDX-License-Identifier: Apache-2.0
"""For each rule of placing, facts that it decides, and facts that look alike and that it spares.

`tests/unit/stretches/test_rules.py` places them, and the page of the rules shows them.
"""

from typing import NamedTuple


class Example(NamedTuple):
    """One partition, as `partition_facts.facts_of` reads it, and what becomes of its batches."""

    rule: str
    words: str
    line: str
    told: str
    """A word for each batch: a fate, or the offsets that it gets back."""
    is_spared: bool = False
    """Whether it shows what the rule leaves to others."""


DECIDED, SPARED = False, True
EXAMPLES = (
    Example("PLACE-1", "A control batch whose record is no marker.",
            "0-9 10-10! 11-19", "kept aside kept"),
    Example("PLACE-1", "A control batch without records, as compaction leaves it.",
            "0-9 10-10 11-19", "kept kept kept", SPARED),
    Example("PLACE-2", "The last offset lies before the first one.",
            "0-9 ~ 15-12? ~ 20-29", "kept aside kept"),
    Example("PLACE-2", "One bit makes the base offset negative; the place states the right one.",
            "0-9 -246--237 20-29", "kept 10-19 kept", SPARED),
    Example("PLACE-3", "Four batches rise, and one found in damage contradicts two of them.",
            "0-9 10-19 ~ 400-409? ~ 20-29 30-39", "kept kept aside kept kept"),
    Example("PLACE-3", "A batch in a value of a broken record has offsets of the batch after it.",
            "0-9 ~ 12-12? ~ 10-19 20-29", "kept aside kept kept", SPARED),
    Example("PLACE-4", "Exactly 10 to 19 are missing, and nothing is lost beside the batch.",
            "0-9 5000-5009 20-29", "kept 10-19 kept"),
    Example("PLACE-4", "The log before is damaged; this log's name states 20 for its first batch.",
            "0-9 ~ | =20 5000-5009 30-39 40-49", "kept 20-29 kept kept"),
    Example("PLACE-4", "128-129 fits at 127 by chance: one bit of the next batch is wrong (137).",
            "100-110 112-126 128-129 129-132 142-144 146-148", "kept kept kept aside kept kept",
            SPARED),
    Example("PLACE-4", "One bit makes 16 of 24, which is missing too, but with other offsets.",
            "0-9 ~ 20-23 16-17 26-29", "kept kept 24-25 kept"),
    Example("PLACE-4", "More offsets are missing than the batch has.",
            "0-9 5000-5009 40-49 50-59", "kept aside kept kept", SPARED),
    Example("PLACE-4", "Two batches changed places: each has offsets that are missing elsewhere.",
            "0-9 20-29 10-19 30-39", "kept moved kept kept", SPARED),
    Example("PLACE-4", "A copy lies where exactly as many offsets are missing.",
            "0-9 10-19m7 20-29 10-19m7 40-49 50-59", "kept kept kept aside kept kept", SPARED),
    Example("PLACE-5", "Leader epochs never fall: the block of epoch 7 is another topic's.",
            "0-9e3 10-19e3 20-29e3 ~ 40-49e7? 50-59e7? ~ 70-79e3 80-89e3 90-99e3",
            "kept kept kept aside aside kept kept kept"),
    Example("PLACE-5", "Producer 8 has written 25 records by offset 59, so it can't be at 900.",
            "0-9p8:0 10-19p8:10 20-29 ~ 40-44p8:900? ~ 70-74p8:20 80-89 90-99",
            "kept kept kept aside kept kept kept"),
    Example("PLACE-5", "A broker wrote all timestamps, and those of the block are two days older.",
            "0-9t900000000 10-19t900000000 ~ 30-39t700000000? ~ 50-59t900000000 60-69t900000000",
            "kept kept aside kept kept"),
    Example("PLACE-5", "The log is named 100, and the block beside damage has lower offsets.",
            "0-9 | =100 50-59? ~ 120-129 130-139", "kept aside kept kept"),
    Example("PLACE-5", "A new leader has a higher epoch from some batch on.",
            "0-9e3 10-19e3 20-29e3 ~ 40-49e7? 50-59e7? ~ 70-79e7 80-89e7 90-99e7",
            "kept kept kept kept kept kept kept kept", SPARED),
    Example("PLACE-5", "One bit of the epoch of one batch: no checksum covers it.",
            "0-9e4 10-19e4 20-29e4 ~ 40-49e5? ~ 70-79e4 80-89e4 90-99e4",
            "kept kept kept kept kept kept kept", SPARED),
    Example("PLACE-5", "A producer whose state the broker has forgotten begins with 0 again.",
            "0-9p8:700 10-19p8:710 ~ 30-34p8:0? ~ 50-54p8:5 60-69", "kept kept kept kept kept",
            SPARED),
    Example("PLACE-6", "The same content with the same offsets lies there twice.",
            "0-9 10-19m7 20-29 10-19m7 30-39", "kept kept kept aside kept"),
    Example("PLACE-6", "A producer sent the same twice: the offsets differ.",
            "0-9 10-19m7 20-29m7 30-39", "kept kept kept kept", SPARED),
    Example("PLACE-7", "A batch in the value of a batch that the end of the log cuts off.",
            "0-9 10-19 > 12-12?", "kept kept inside"),
    Example("PLACE-7", "Offsets that rise: a disk may have written the batch there.",
            "0-9 10-19 > 32-32?", "kept kept kept", SPARED),
    Example("PLACE-8", "Two batches lie after 69; their offsets and bytes are missing before 40.",
            "0-9 10-19 ~ ~ 40-49 50-59 60-69 20-29? 30-39? 70-79",
            "kept kept kept kept kept moved moved kept"),
    Example("PLACE-8", "Blocks changed their order: together they have all that is missing.",
            "0-9 50-59 60-69 30-39 40-49 10-19 20-29 70-79",
            "kept moved moved moved moved kept kept kept"),
    Example("PLACE-8", "A lone batch and a block changed places.",
            "0-9 10-19 ~ 60-69? 70-79? ~ 40-49 50-59 ~ 25-29? ~ 80-89 90-99",
            "kept kept moved moved kept kept moved kept kept"),
    Example("PLACE-8", "Two lone batches changed places.",
            "0-9 ~ 72-75? ~ 40-49 50-59 ~ 25-29? ~ 80-89 90-99",
            "kept moved kept kept moved kept kept"),
    Example("PLACE-8", "A lone batch follows on 10-19, but for two sectors of 512 bytes.",
            "0-9 10-19 ~ 40-49 50-59b824 20-29? ~ 80-89 90-99",
            "kept kept kept kept moved kept kept"),
    Example("PLACE-8", "Of two that fit, the one beside its place is moved.",
            "0-4 ~ 20-29m3? ~ 5-9 20-29 10-19 30-39",
            "kept aside kept moved kept kept"),
    Example("PLACE-8", "Another topic's higher offsets: no bytes are missing for them.",
            "0-9 10-19 ~ 900-909? 910-919? ~ 30-39 40-49", "kept kept aside aside kept kept",
            SPARED),
    Example("PLACE-8", "An old copy of what compaction removed: 0-9 and 30-39 touch.",
            "0-9 30-39 40-49 55-59 ~ 20-24? 25-29? ~ 80-89",
            "kept kept kept kept aside aside kept", SPARED),
    Example("PLACE-8", "One batch that fills no hole: it may be any topic's.",
            "0-9 10-19 ~ ~ 50-59 60-69 30-39? ~ 70-79", "kept kept kept kept aside kept", SPARED),
    Example("PLACE-9", "18 batches leave no offset out, and the last one states 64 too many.",
            "0..17 82-82", "kept " * 18 + "aside"),
    Example("PLACE-9", "An entry of the offset index states the same offset.",
            "0..17 82-82i", "kept " * 19, SPARED),
    Example("PLACE-9", "The name of the log states the same offset.",
            "0..17 | 82-82", "kept " * 19, SPARED),
    Example("PLACE-9", "A hole before the last batch explains the offsets.",
            "0..17 ~ 82-82", "kept " * 19, SPARED),
    Example("PLACE-10", "Its size was wrong, and 880 offsets can't have been in 100 lost bytes.",
            "0-9 10-19 ~ 900-909*", "kept kept aside"),
    Example("PLACE-10", "80 offsets can have been in 100 lost bytes.",
            "0-9 10-19 ~ 100-109*", "kept kept kept", SPARED),
    Example("PLACE-11", "Its offsets are after all others, and it lies between 19 and 20.",
            "0-9 10-19 900-909? 20-29", "kept kept aside kept"),
)  # fmt: skip
