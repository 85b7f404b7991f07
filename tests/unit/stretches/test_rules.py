# SPDX-License-Identifier: Apache-2.0
"""Each rule of placing by the examples that its page shows, with stretches and without."""

from dataclasses import replace

import pytest

from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.placing import Placement, place, place_all
from segproof.stretches.kafka.rules import ORDER, RULES
from segproof_tests.partition_facts import Batches, condensed, facts_of, told
from segproof_tests.placing_examples import EXAMPLES, Example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.rule}: {one.words}")
def test_an_example(example: Example) -> None:
    """The batches become what the page states; the rule decides one, unless it spares them."""
    facts = facts_of(example.line)
    placement = place(facts)
    assert isinstance(placement, Placement)
    assert example.told.split() == told(facts, placement)
    odd = {
        placement.why(row).rule_id
        for row, word in enumerate(told(facts, placement))
        if word != "kept" or example.rule == "PLACE-3"
    }
    assert (example.rule in odd) != (example.is_spared and example.rule != "PLACE-3")
    few, again = place_all(condensed(facts, 0), Batches(facts).open)
    found = [
        word
        for word, row in zip(told(few, again), few.rows, strict=True)
        for _ in range(int(row["batches"]))
    ]
    assert example.told.split() == found


@pytest.mark.checks("EPOCH-1")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0-9e0 10-19e0 20-24e1 25-29e1 ~ 20-29e0 30-39e0 40-49e0", "kept " * 4 + "aside " * 3),
        ("0-9e0 10-19e0 20-29e1 30-39e1 ~ 40-49e0 50-59e0", "kept " * 4 + "aside " * 2),
        ("0-9e0 10-19e0 20-29e0 ~ 30-39e1 40-49e1", "kept " * 5),
    ],
    ids=["old sectors are longer", "old sectors follow", "the rest of its block is right"],
)
def test_the_checkpoint_of_epochs_tells_old_sectors(line: str, expected: str) -> None:
    """Epoch 1 began at offset 20, after a truncation: epoch 0 has no batch from there on."""
    facts = replace(facts_of(line), epochs=((0, 0), (1, 20)))
    placement = place(facts)
    assert isinstance(placement, Placement)
    assert expected.split() == told(facts, placement)


@pytest.mark.checks("EPOCH-1")
def test_batches_of_the_old_format_lie_behind_epochs_of_the_checkpoint() -> None:
    """Brokers wrote epochs of partitions whose batches had none yet, and kept the file later."""
    line = "0-9v1e-1 10-19v1e-1 ~ 30-39v1e-1 40-49v1e-1 50-59e5 60-69e5"
    facts = replace(facts_of(line), epochs=((3, 5), (5, 50)))
    placement = place(facts)
    assert isinstance(placement, Placement)
    assert ["kept"] * 6 == told(facts, placement)


@pytest.mark.checks("EPOCH-1")
@pytest.mark.parametrize(
    "line",
    [
        "0-99e3 ~ 110-149e3 150-159e1 ~ 170-299e3",
        "0-99e3 ~ 110-149e3 150-159e67 ~ 170-299e3",
        "0-99e3 ~ 110-199e3 ~ 210-289e3 290-299e1",
    ],
)
def test_one_wrong_epoch_takes_no_block(line: str) -> None:
    """No checksum covers an epoch: a batch whose epoch is one bit off belongs to its neighbours."""
    facts = facts_of(line)
    placement = place(facts)
    assert isinstance(placement, Placement)
    assert set(told(facts, placement)) == {"kept"}


@pytest.mark.checks("BATCH-3")
def test_a_block_to_which_an_index_leads_is_not_found_by_a_search() -> None:
    """Its first batches are, since damage lies before them."""
    line = "0-499k ~ 1500-1509k? 1510-1519ki 1520-1529k 1530-1539k ~"
    facts = facts_of(line)
    placement = place(facts)
    assert isinstance(placement, Placement)
    assert set(told(facts, placement)) == {"kept"}


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0-9i 10-19e0 ~ 20-29e1w? 30-39e2? ~ 40-49e2i 50-59e2", "kept kept aside aside kept kept"),
        (
            "=0 1-9 10-19 ~ | =20 21-29 30-39 ~ | =60 0-4 5-9 10-14 15-19 20-24 25-29 30-34 ~",
            "kept " * 4 + "aside " * 7,
        ),
        ("0-9 10-19k ~ | =1000000000 ~ 1000000010-1000000019", "kept kept kept"),
    ],
    ids=["an entry leads into a block of two epochs", "two logs have these offsets by their names",
         "the name of the log explains the jump"],
)  # fmt: skip
def test_more_facts(line: str, expected: str) -> None:
    """What a block or a log states counts as a whole, and a name explains missing offsets."""
    facts = facts_of(line)
    placement = place(facts)
    assert isinstance(placement, Placement)
    assert expected.split() == told(facts, placement)


def test_each_rule_has_examples_of_both_kinds() -> None:
    """And its number; the last rule spares nothing."""
    shown = {(one.rule, one.is_spared) for one in EXAMPLES}
    wanted = {(rule.rule_id, spared) for rule in RULES for spared in (False, True)}
    assert wanted - {("PLACE-11", True)} == shown
    assert [f"PLACE-{number + 1}" for number in range(len(RULES))] == [
        rule.rule_id for rule in RULES
    ]
    assert {*RULES} == {*ORDER}


def test_what_many_blocks_need_is_asked_for_at_once() -> None:
    """50 pairs of blocks have changed places; their stretches are opened in three rounds."""
    parts = [(at + 20, at + 10, at, at + 30) for at in range(0, 2000, 40)]
    line = " ".join(f"{one}..{one + 9}" for part in parts for one in part)
    facts = facts_of(line, named=0)
    batches = Batches(facts)
    _, placement = place_all(condensed(facts, 0), batches.open)
    assert {*placement.fates.tolist()} == {Fate.KEPT, Fate.MOVED}
    assert batches.asked <= 3
