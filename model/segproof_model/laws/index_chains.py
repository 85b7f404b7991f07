# SPDX-License-Identifier: Apache-2.0
"""The laws of queries to an index file: how a chain is walked, and where it ends.

Used by: the harness, `verify`'s tests, the generated pages.
"""

from dataclasses import dataclass, replace
from typing import Any

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import never_falls, raised
from segproof_model.laws.key_judging import (
    Chain,
    Visit,
    all_entries,
    chain_of,
    entry_place,
    falling,
    is_of_file,
    is_refused,
    is_regular,
    kept_hash,
    matching,
    number_at,
    other_key,
    slot_value,
    time_of,
)
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.remembering import remembered
from segproof_model.profiles import ROCKETMQ_4_7_0, ROCKETMQ_5_5_1
from segproof_model.rocketmq.index_file import LONGEST_LIST, IndexFile

STRUCTURE = "index-file"
SELECT = "RocketMQ IndexFile.selectPhyOffset, 4.0.0 to 5.5.1"
CORRUPT = ErrorKind.CORRUPT_INDEX


@dataclass(frozen=True, slots=True)
class Query:
    """A query that looks at a chain, and the chain."""

    file: Any
    key_hash: int
    given: tuple[int, ...]
    max_num: int
    begin: int
    end: int
    chain: Chain
    outcome: Any

    @property
    def room(self) -> int:
        """How many offsets may be added."""
        return max(self.max_num - len(self.given), 0)

    @property
    def added(self) -> tuple[int, ...]:
        """What was added to the offsets given."""
        return tuple(self.outcome[len(self.given) :])

    def found_in(self, visits: list[Visit]) -> list[int]:
        """Return the offsets of the visits that the query is for."""
        return matching(self.file, visits, self.key_hash, self.begin, self.end)

    @property
    def is_cut(self) -> bool:
        """Whether the list is full before the walk meets the end of the chain."""
        visits = self.chain.visits
        if self.chain.ending in ("slot", "empty"):
            return False
        looked_behind = self.chain.ending in ("negative", "outside", "cycle")
        return len(self.found_in(visits if looked_behind else visits[:-1])) >= self.room

    @property
    def checks(self) -> bool:
        """Whether a chain that does not lead downwards is corrupt."""
        return bool(self.file.profile.rmq_checks_chains)

    @property
    def is_corrupt(self) -> bool:
        """Whether a walk that checks the chain meets what is corrupt."""
        bad = ("slot", "up", "stop", "negative", "outside")
        return self.chain.ending in bad and not self.is_cut


@remembered
def query_of(transition: Transition) -> Query | None:
    """Return the query that the step was, or None if it was none that looks at a chain."""
    if not is_of_file(transition, "select_phy_offset"):
        return None
    file, arguments = transition.before, transition.arguments
    key = arguments["key"]
    if key is None or file.hash_slot_num == 0 or not (file.is_available and file.is_mapped):
        return None
    key_hash, begin = kept_hash(key), arguments["begin"]
    given, chain = tuple(arguments["phy_offsets"]), chain_of(file, key_hash, begin)
    if file.profile.rmq_checks_chains:
        chain = falling(chain, slot_value(file, key_hash), file)
    limits = arguments["max_num"], begin, arguments["end"]
    return Query(file, key_hash, given, *limits, chain, transition.outcome)


@law("RMQIDX-31", structure=STRUCTURE, scope="step", source=SELECT)
def list_is_filled_up_to_max_num(transition: Transition) -> bool:
    """A query adds to the given list until it has max_num elements, those present before included;
    max_num <= 0 adds nothing."""
    query = query_of(transition)
    if query is None or isinstance(query.outcome, Raised):
        return True
    if not isinstance(query.outcome, tuple) or query.outcome[: len(query.given)] != query.given:
        return False
    newest_first = query.found_in(query.chain.visits)[: query.room]
    first = query.added[: len(newest_first)]
    return len(query.added) <= query.room and first == tuple(newest_first)


@law("RMQIDX-32", structure=STRUCTURE, scope="step", source=SELECT)
def slot_without_entry_has_nothing(transition: Transition) -> bool:
    """Nothing is added when the slot value is <= 0 or above the index count, or the count is <= 1.

    In segproof a slot value other than 0 that is not below the count is corrupt.
    """
    query = query_of(transition)
    if query is None:
        return True
    value, count = slot_value(query.file, query.key_hash), query.file.index_count
    if value is None or (0 < value < count and count > 1):
        return True
    if query.checks and value != 0 and count > 1:
        return raised(transition, CORRUPT)
    if value == count > 1:
        return True
    return bool(query.outcome == query.given)


@law("RMQIDX-33", structure=STRUCTURE, scope="step", source=SELECT)
def visited_entries_in_time_are_added(transition: Transition) -> bool:
    """An entry is added exactly when it is visited, its hash is that of the key, and begin <=
    wrap64(B + 1000 * seconds) <= end, B being the file's begin timestamp."""
    query = query_of(transition)
    if query is None or query.chain.ending == "cycle" or isinstance(query.outcome, Raised):
        return True
    wanted = [
        visit.phy_offset
        for visit in query.chain.visits
        if visit.key_hash == query.key_hash
        and query.begin <= time_of(query.file, visit)
        and time_of(query.file, visit) <= query.end
    ]
    return query.added == tuple(wanted[: query.room])


@law("RMQIDX-34", structure=STRUCTURE, scope="step", source=SELECT)
def equal_hashes_are_equal_keys(transition: Transition) -> bool:
    """Keys are compared by hash only: another key of the same hash has the same answer."""
    query = query_of(transition)
    if query is None:
        return True
    arguments = {**transition.arguments, "key": other_key(query.key_hash)}
    return bool(query.file.select_phy_offset(**arguments).outcome == query.outcome)


@law("RMQIDX-35", structure=STRUCTURE, scope="step", source=SELECT)
def negative_seconds_end_the_walk(transition: Transition) -> bool:
    """A walk stops before an entry with negative seconds; in segproof the file is corrupt."""
    query = query_of(transition)
    if query is None or query.chain.ending != "negative" or query.is_cut:
        return True
    if query.checks:
        return raised(transition, CORRUPT)
    return bool(query.outcome == (*query.given, *query.found_in(query.chain.visits)))


def _with_end(query: Query, last: Visit) -> Any:
    """Return the file in which the chain has no entry behind this one."""
    place, image = entry_place(query.file, last.number) + 16, query.file.image
    ended = image[:place] + bytes(4) + image[place + 4 :]
    name = query.file.file_name
    return replace(query.file, directory=query.file.directory.write(name, ended))


@law("RMQIDX-36", structure=STRUCTURE, scope="step", source=SELECT)
def walk_stops_at_the_first_old_entry(transition: Transition) -> bool:
    """A walk stops after an entry whose previous index is <= 0, above the index count or its own,
    or whose time is before begin, whichever key it belongs to: as if the chain ended there.

    In segproof a previous index other than 0 that is not below its entry's is corrupt.
    """
    query = query_of(transition)
    if query is None or not is_regular(query.file):
        return True
    if query.checks and query.chain.ending in ("stop", "up"):
        return query.is_cut or raised(transition, CORRUPT)
    if query.chain.ending not in ("stop", "old"):
        return True
    ended = _with_end(query, query.chain.visits[-1])
    return bool(ended.select_phy_offset(**transition.arguments).outcome == query.outcome)


@law("RMQIDX-37", structure=STRUCTURE, scope="step", source=SELECT)
def unwritten_entry_is_followed(transition: Transition) -> bool:
    """A slot value or previous index equal to the index count is followed into the unwritten
    entry, which in a fresh file matches hash 0 and yields offset 0.

    In segproof it is corrupt.
    """
    query = query_of(transition)
    if query is None:
        return True
    count, visits = query.file.index_count, query.chain.visits
    if query.checks:
        leads_there = slot_value(query.file, query.key_hash) == count > 1
        return not leads_there or raised(transition, CORRUPT)
    if query.is_cut or query.chain.ending == "cycle":
        return True
    if count not in [visit.number for visit in visits]:
        return True
    unwritten = visits[[visit.number for visit in visits].index(count)]
    before = query.found_in(visits[: visits.index(unwritten)])
    own = query.found_in([unwritten])
    return query.added[len(before) : len(before) + len(own)] == tuple(own)


@law("RMQIDX-38", structure=STRUCTURE, scope="step", source=SELECT)
def index_error_ends_the_walk(transition: Transition) -> bool:
    """An entry outside of the file ends the walk: what was added stays, and the file is released.

    In segproof it is corrupt.
    """
    query = query_of(transition)
    if query is None or query.chain.ending != "outside" or query.is_cut:
        return True
    released = transition.after.ref_count == transition.before.ref_count
    if query.checks:
        return raised(transition, CORRUPT) and released
    found = tuple(query.found_in(query.chain.visits))
    return bool(query.outcome == (*query.given, *found) and released)


@law("RMQIDX-39", structure=STRUCTURE, scope="step", source=SELECT)
def key_without_a_slot_leaks(transition: Transition) -> bool:
    """A query with a null key, or to a file without slots, raises and leaves the file held once
    more; in segproof it does not."""
    if not is_of_file(transition, "select_phy_offset"):
        return True
    before, after = transition.before, transition.after
    has_slot = transition.arguments["key"] is not None and before.hash_slot_num != 0
    if has_slot or not before.is_available or is_refused(before):
        return bool(after == before)
    leaks = 1 if before.profile.rmq_null_key_leaks else 0
    return isinstance(transition.outcome, Raised) and after.ref_count == before.ref_count + leaks


@law("RMQIDX-40", structure=STRUCTURE, scope="step", source=SELECT)
def cycles_are_walked_for_ever(transition: Transition) -> bool:
    """A cycle with members that match is walked until the list has max_num elements, and one
    without for ever.

    segproof follows only numbers that fall, and finds a file with others corrupt.
    """
    query = query_of(transition)
    if query is None:
        return True
    if query.checks:
        return raised(transition, CORRUPT) is query.is_corrupt
    if query.chain.ending != "cycle":
        return not raised(transition, ErrorKind.ENDLESS)
    if query.is_cut:
        return isinstance(query.outcome, tuple)
    numbers = [visit.number for visit in query.chain.visits]
    again = query.chain.visits[numbers.index(query.chain.visits[-1].prev_index) :]
    if not query.found_in(again):
        return raised(transition, ErrorKind.ENDLESS)
    if query.room > LONGEST_LIST:
        return raised(transition, ErrorKind.OUT_OF_MEMORY)
    first, turn = query.found_in(query.chain.visits), query.found_in(again)
    whole = first + turn * (query.room // len(turn) + 1)
    return isinstance(query.outcome, tuple) and query.added == tuple(whole[: query.room])


GOLDEN_PUTS = (
    ("T#a", 2**32, 1700000000123),
    ("T#b", 2**32 + 256, 1700000001122),
    ("T#a", 2**32 + 512, 1700000001123),
    ("U#\u4e2d\U0001f600", 2**32 + 768, 1699999999999),
    ("T#c", 2**32 + 1024, 1700086400123),
)
GOLDEN = bytes.fromhex(
    "0000018bcfe5687b 0000018bd50bc47b 0000000100000000 0000000100000400 00000003 00000006"
    "00000005 00000000 00000004 00000002"
    "0000000000000000 0000000000000000 00000000"
    "00013ff2 0000000100000000 00000000 00000000"
    "00013ff3 0000000100000100 00000000 00000000"
    "00013ff2 0000000100000200 00000001 00000001"
    "05fe3b22 0000000100000300 00000000 00000003"
    "00013ff4 0000000100000400 00015180 00000000"
)


@law("RMQIDX-41", structure=STRUCTURE, scope="pure", source="RocketMQ IndexFile, the JVM's bytes")
def golden_files_are_reproduced() -> bool:
    """The golden files are produced byte for byte; up to 4.7.0 their slot count is higher."""
    older = GOLDEN[:32] + (5).to_bytes(4, "big") + GOLDEN[36:]
    for profile, expected in ((ROCKETMQ_5_5_1, GOLDEN), (ROCKETMQ_4_7_0, older)):
        file = IndexFile.open("0", 4, 6, profile=profile).after
        assert isinstance(file, IndexFile)
        taken = []
        for put in (*GOLDEN_PUTS, GOLDEN_PUTS[0]):
            step = file.put_key(*put)
            file = step.after
            taken.append(step.outcome)
        if file.to_bytes() != expected or taken != [True] * 5 + [False]:
            return False
    return True


def is_intact(file: Any) -> bool:
    """Return whether the bytes are those of completed puts with times that never fall."""
    if not is_regular(file) or file.index_count > file.index_num or file.begin_timestamp <= 0:
        return False
    entries = all_entries(file)
    heads: dict[int, int] = {}
    for entry in entries:
        slot = entry.key_hash % file.hash_slot_num
        if entry.prev_index != heads.get(slot, 0):
            return False
        heads[slot] = entry.number
    slots = [number_at(file.image, 40 + 4 * slot) for slot in range(file.hash_slot_num)]
    seconds = [entry.time_diff for entry in entries]
    linked = slots == [heads.get(slot, 0) for slot in range(file.hash_slot_num)]
    return linked and never_falls([0, *seconds])


@law("RMQIDX-42", structure=STRUCTURE, scope="step", source=SELECT)
def intact_file_answers_all(transition: Transition) -> bool:
    """In a file of completed puts with times that never fall, a query over all times finds exactly
    the offsets put under its hash, newest first, cut at max_num."""
    query = query_of(transition)
    if query is None or not is_intact(query.file) or query.begin > query.file.begin_timestamp:
        return True
    entries = all_entries(query.file)
    if any(query.file.begin_timestamp + 1000 * one.time_diff > query.end for one in entries):
        return True
    same = [entry.phy_offset for entry in entries if entry.key_hash == query.key_hash]
    return bool(query.outcome == (*query.given, *same[::-1][: query.room]))
