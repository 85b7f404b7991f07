# SPDX-License-Identifier: Apache-2.0
"""The laws of queries to an index file: the walk of a chain, and its end."""

from typing import Any

from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import int32_at
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import apply
from segproof_model.laws.arithmetic import never_falls
from segproof_model.laws.register import Transition, has, law, laws_of, retired
from segproof_model.laws.rocketmq.format import index_entries as read
from segproof_model.rocketmq.format import index_file_deviations as ours
from segproof_model.rocketmq.format import index_file_releases as older
from segproof_model.rocketmq.format.index_file import LONGEST_LIST, IndexFile

SELECT = "RocketMQ IndexFile.selectPhyOffset, 4.0.0 to 5.5.1"


class Query:
    """A query that walks a chain, and the walk without a limit on the results."""

    def __init__(self, step: Transition) -> None:
        self.step, self.file = step, step.before
        self.key_hash = read.kept_hash(step.arguments["key"])
        self.begin, self.end = step.arguments["begin"], step.arguments["end"]
        self.given = tuple(step.arguments["phy_offsets"])
        self.room: int = max(step.arguments["max_num"] - len(self.given), 0)
        """How many offsets may be added."""
        outcome: Any = step.outcome
        self.added: tuple[int, ...] = outcome[len(self.given) :] if step.succeeded else ()
        """The offsets that were added."""
        self.checks = has(step.before, ours.ChainsAreChecked)
        """Whether a chain that does not lead downwards is corrupt."""
        self.visits: list[read.Entry] = []
        """The entries that are looked at, each once, in their order."""
        self.ending = self._walk()
        """Why there is no further one: `end`, `old`, `negative`, `outside`, `cycle`, or `strange`
        where a number leads to no entry, or, in a walk that checks, not downwards."""

    def _walk(self) -> str:
        place, number, before = read.slot_place(self.file, self.key_hash), 0, 0
        if self.file.index_count > 1 and read.is_inside(self.file, place, 4):
            number = int32_at(self.file.image, place)
        limit, known = self.file.index_count + (not self.checks), set[int]()
        while number not in known or number == before:
            if number == 0:
                return "end"
            if not 0 < number < limit or number == before:
                return "strange"
            entry = read.entry_at(self.file, number)
            if entry is None or (self.checks and number >= self.file.index_num):
                return "outside"
            if entry.time_diff < 0:
                return "negative"
            self.visits.append(entry)
            known.add(number)
            if entry.prev_index != 0 and read.time_of(self.file, entry) < self.begin:
                return "old"
            before, number = number, entry.prev_index
            limit = before if self.checks else limit
        return "strange" if self.checks else "cycle"

    def found_in(self, visits: list[read.Entry]) -> list[int]:
        """Return the offsets of the entries that the query is for."""
        same = [one for one in visits if one.key_hash == self.key_hash]
        pairs = [(read.time_of(self.file, one), one.phy_offset) for one in same]
        return [offset for time, offset in pairs if self.begin <= time <= self.end]

    @property
    def is_cut(self) -> bool:
        """Whether the list is full before the walk reaches the end of the chain."""
        is_strange = self.ending == "strange"
        found = self.found_in(self.visits[:-1] if is_strange else self.visits)
        return len(found) >= self.room and bool(self.visits or not is_strange)

    @property
    def is_corrupt(self) -> bool:
        """Whether a checking walk finds corruption."""
        is_sound = self.is_cut or self.ending in ("end", "old")
        return self.checks and not is_sound

    def ends(self, *endings: str) -> bool:
        """Return whether a walk that ends so adds what it finds, or one that checks is corrupt."""
        if self.ending not in endings or self.is_cut:
            return True
        if self.is_corrupt:
            return self.step.raised(ErrorKind.CORRUPT_INDEX)
        return self.step.outcome == (*self.given, *self.found_in(self.visits))


def asked(step: Transition) -> Query | None:
    """Return the query that a step was, or None if it was none that looks at a chain."""
    file, key = step.before, step.arguments["key"]
    if key is None or file.hash_slot_num == 0 or not (file.is_available and file.is_mapped):
        return None
    return Query(step)


law_of_queries = laws_of(asked, IndexFile, SELECT, on="select_phy_offset")


@law_of_queries("RMQIDX-31")
def list_is_filled_up_to_max_num(query: Query) -> bool:
    """A query adds to the given list until the list has max_num elements; max_num <= 0 adds
    nothing.
    """
    is_kept = query.step.outcome == (*query.given, *query.added)
    return not query.step.succeeded or (is_kept and len(query.added) <= query.room)


@law_of_queries("RMQIDX-32")
def slot_without_entry_has_nothing(query: Query) -> bool:
    """Nothing is added when the slot value is <= 0 or above the index count, or the count is <= 1.

    In segproof a slot value other than 0 that is not below the count is corrupt.
    """
    return bool(query.visits) or query.ends("end", "strange")


@law_of_queries("RMQIDX-33")
def visited_entries_in_time_are_added(query: Query) -> bool:
    """An entry is added exactly when it is visited, its hash is the key's hash, and begin <=
    wrap64(B + 1000 * seconds) <= end, with B the file's begin timestamp.
    """
    found = query.found_in(query.visits)
    is_asked = query.step.succeeded and query.ending != "cycle"
    return not is_asked or query.added == tuple(found[: query.room])


def other_key(key_hash: int) -> str:
    """Return a text of this hash, a number that is not negative: its digits to base 31.

    >>> read.kept_hash(other_key(2**31 - 1)) == 2**31 - 1
    True
    """
    digits = ""
    while key_hash:
        key_hash, digit = divmod(key_hash, 31)
        digits = chr(digit) + digits
    return digits


@law_of_queries("RMQIDX-34")
def equal_hashes_are_equal_keys(query: Query) -> bool:
    """Keys are compared by hash only: another key of the same hash has the same answer."""
    arguments = {**query.step.arguments, "key": other_key(query.key_hash)}
    return apply(query.file, "select_phy_offset", **arguments).outcome == query.step.outcome


@law_of_queries("RMQIDX-35")
def negative_seconds_end_the_walk(query: Query) -> bool:
    """A walk stops before an entry with negative seconds; in segproof the file is corrupt."""
    return query.ends("negative")


@law_of_queries("RMQIDX-36")
def walk_stops_at_the_first_old_entry(query: Query) -> bool:
    """A walk stops after an entry whose previous index is <= 0, above the index count or its own
    number, or whose time is before begin, for any key: as if the chain ended there.

    In segproof a previous index other than 0 that is not below its entry's is corrupt.
    """
    return query.ends("strange", "old")


retired(
    "RMQIDX-37",
    IndexFile,
    "A slot value or previous index equal to the index count is followed into the unwritten entry,"
    " which in a fresh file matches hash 0 and yields offset 0; in segproof it is corrupt.",
    IndexFile.accepted,
)


@law_of_queries("RMQIDX-38")
def index_error_ends_the_walk(query: Query) -> bool:
    """An entry outside of the file ends the walk: the added offsets stay, and the file is released.

    In segproof it is corrupt.
    """
    return query.ends("outside") and query.step.is_unchanged


@law("RMQIDX-39", IndexFile, SELECT, on="select_phy_offset")
def key_without_a_slot_leaks(step: Transition) -> bool:
    """A query with a null key, or to a file without slots, raises and leaves the file held once
    more; in segproof it does not."""
    before = step.before
    has_slot = step.arguments["key"] is not None and before.hash_slot_num != 0
    if has_slot or not before.is_available or read.is_refused(before):
        return step.is_unchanged
    leaked = before.ref_count + (not has(before, ours.RefusedQueryLetsGo))
    return not step.succeeded and bool(step.after.ref_count == leaked)


@law_of_queries("RMQIDX-40")
def cycles_are_walked_for_ever(query: Query) -> bool:
    """A ring with matching entries is walked until the list has max_num elements, and a ring
    without them for ever.

    segproof follows only falling numbers, and reports other numbers as corruption.
    """
    if query.checks:
        return query.step.raised(ErrorKind.CORRUPT_INDEX) is query.is_corrupt
    if query.ending != "cycle" or query.is_cut:
        return query.step.succeeded
    numbers = [one.number for one in query.visits]
    again = query.found_in(query.visits[numbers.index(query.visits[-1].prev_index) :])
    if not again or query.room > LONGEST_LIST:
        return query.step.raised(ErrorKind.OUT_OF_MEMORY if again else ErrorKind.ENDLESS)
    first = query.found_in(query.visits)
    is_full = query.step.succeeded and len(query.added) == query.room
    return is_full and list(query.added[: len(first)]) == first and query.added[-1] in again


GOLDEN_PUTS = (
    ("T#a", 2**32, 1700000000123),
    ("T#b", 2**32 + 256, 1700000001122),
    ("T#a", 2**32 + 512, 1700000001123),
    ("U#\u4e2d\U0001f600", 2**32 + 768, 1699999999999),
    ("T#c", 2**32 + 1024, 1700086400123),
)
GOLDEN = bytes.fromhex(
    "0000018bcfe5687b 0000018bd50bc47b 0000000100000000 0000000100000400 00000003 00000006"
    "00000005000000000000000400000002 0000000000000000 00000000 00000000 00000000"
    "00013ff2 0000000100000000 00000000 00000000 00013ff3 0000000100000100 00000000 00000000"
    "00013ff2 0000000100000200 00000001 00000001 05fe3b22 0000000100000300 00000000 00000003"
    "00013ff4 0000000100000400 00015180 00000000"
)
"""Header, four slots, entry 0, and the five that were put."""
OLD = Release("up to 4.7.0", (older.EachPutIsCounted,))


@law("RMQIDX-41", IndexFile, "RocketMQ IndexFile, the JVM's bytes")
def golden_files_are_reproduced() -> bool:
    """The golden files are produced byte for byte; up to 4.7.0 their slot count is higher."""
    older = GOLDEN[:32] + (5).to_bytes(4, "big") + GOLDEN[36:]
    for kind, expected in ((IndexFile, GOLDEN), (OLD.kind(IndexFile), older)):
        file = kind(Files(), "0", 4, 6)
        taken = [file.put_key(*put) for put in (*GOLDEN_PUTS, GOLDEN_PUTS[0])]
        if file.image != expected or taken != [True] * 5 + [False]:
            return False
    return True


def is_intact(file: Any) -> bool:
    """Return whether the bytes are those of completed puts with times that never fall."""
    if not read.is_regular(file) or file.index_count > file.index_num or file.begin_timestamp <= 0:
        return False
    heads = [0] * file.hash_slot_num
    for entry in read.all_entries(file):
        slot = entry.key_hash % file.hash_slot_num
        if entry.prev_index != heads[slot]:
            return False
        heads[slot] = entry.number
    times = [file.begin_timestamp, *(read.time_of(file, entry) for entry in read.all_entries(file))]
    return read.slots_of(file.image, file.hash_slot_num) == tuple(heads) and never_falls(times)


@law_of_queries("RMQIDX-42")
def intact_file_answers_all(query: Query) -> bool:
    """In a file of completed puts with times that never fall, a query finds exactly the offsets put
    under its hash in the time asked for, newest first, cut at max_num."""
    if not is_intact(query.file):
        return True
    same = query.found_in(list(reversed(read.all_entries(query.file))))
    return query.step.outcome == (*query.given, *same[: query.room])
