# SPDX-License-Identifier: Apache-2.0
"""Offsets that are missing where no byte is: one of the two blocks beside them is foreign.

The log cleaner removes every record without a key from what it has cleaned, and it cleans from the
begin on. So behind such a record it has removed nothing. A salvage has: it leaves gaps, too.

Laws: BATCH-3.
"""

from collections.abc import Iterator
from itertools import pairwise

from segproof.stretches.kafka.desk import KEPT_FATES, Desk, Group
from segproof.stretches.kafka.facts import Reach
from segproof.stretches.kafka.strangers import lacks_room


def forget_room(desk: Desk, groups: list[Group]) -> bool:
    """Forget what offsets that are missing without a byte tell, where they tell nothing.

    Where no damage is near, they were lost before: by a salvage, say. So others may be too. Where
    sizes lead to both groups, both are of the log. And a batch beside them may have changed places
    with one, if it has as many offsets. Return whether the groups have to be made again.
    """
    is_known = bool(desk.is_keyless.any())
    if desk.rows["leaps"][desk.kept].any():
        desk.is_keyless[:] = False
    for one, two in _roomless(desk, groups):
        if not (one.is_at_damage or two.is_at_damage):
            desk.is_keyless[:] = False
            break
        if not _searched(desk, one, two):
            desk.is_keyless[one.rows[-1]] = False
        missing = int(desk.firsts[two.rows[0]]) - desk.last(one.rows[-1]) - 1
        beside = (one.rows[0] - 1, two.rows[-1] + 1)
        if any(
            desk.fates[row] not in KEPT_FATES and desk.spans[row] + 1 == missing
            for row in beside
            if 0 <= row < len(desk.rows)
        ):
            desk.is_keyless[one.rows[-1]] = False
    return is_known


def without_room(desk: Desk, groups: list[Group]) -> list[int]:
    """Return the rows of groups that have no room for the offsets missing beside them.

    A search found them. Of two such groups it is the one to which no entry leads, or else that has
    fewer bytes; of three that lie side by side, the first two are asked.
    """
    rows, after = list[int](), -1
    for one, two in _roomless(desk, groups):
        found = _searched(desk, one, two)
        if found and one.rows[0] != after:
            fewest = min(found, key=lambda group: _weight(desk, group))
            rows, after = rows + fewest, two.rows[0]
    return rows


def _searched(desk: Desk, *groups: Group) -> list[list[int]]:
    """Return the rows of those beside damage that a search found: sizes lead from nowhere there."""
    reach = desk.rows["reach"]
    return [
        one.rows for one in groups if one.is_at_damage and (reach[one.rows] == Reach.SEARCH).all()
    ]


def _weight(desk: Desk, rows: list[int]) -> tuple[bool, int]:
    return bool(desk.rows["is_indexed"][rows].any()), sum(map(desk.bytes_of, rows))


def _roomless(desk: Desk, groups: list[Group]) -> Iterator[tuple[Group, Group]]:
    """Yield the neighbours that leave more offsets out than bytes."""
    for one, two in pairwise(groups):
        ends = one.rows[-1], two.rows[0]
        if desk.is_keyless[ends[0]] and lacks_room(*(desk.rows_of([end]) for end in ends)):
            yield one, two
