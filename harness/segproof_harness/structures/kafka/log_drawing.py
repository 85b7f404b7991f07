# SPDX-License-Identifier: Apache-2.0
"""How the directory, the options and the arguments of a partition's log are drawn."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.structures.choices import (
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    MAGIC_NEWEST,
    Choose,
    within,
)
from segproof_harness.structures.kafka.abstract_index import clamp64
from segproof_harness.structures.kafka.appended_records import OFFSET_MAX, draw_stored, end_of
from segproof_harness.structures.kafka.segment_drawing import (
    DAMAGES,
    KINDS,
    Damage,
    damaged,
    draw_broken,
    draw_index,
)
from segproof_harness.structures.kinds import TIME_MS, OneOf, Only, Record, Row
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Setup, Situation
from segproof_model.kafka.broker.log_loader_deviations import is_odd
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import outcome_of

EPOCHS = "leader-epoch-checkpoint"
START_MS = 1_000_000
NEVER = 2**63 - 1
ROOMY_BYTES = 1200
"""An index of this size takes what a recovery enters."""
CHOICES: Mapping[str, tuple[int | str | bool, ...]] = {
    "segment_bytes": (400, 1000, 200, 2000),
    "segment_ms": (604_800_000, 604_800_000, 1000, 50_000),
    "segment_jitter_ms": (0, 0, 0, 7, 2000),
    "segment_index_bytes": (120, 240, 48, 24, 16, ROOMY_BYTES),
    "index_interval_bytes": (0, 100, 500),
    "preallocate": (False, False, False, True),
    "max_message_bytes": (1_048_588, 1_048_588, 1_048_588, 150),
    "retention_ms": (604_800_000, -1, 1000, 60_000),
    "retention_bytes": (-1, 500, 1500, 0),
    "file_delete_delay_ms": (60_000, 0, 500),
    "message_timestamp_type": ("CreateTime", "CreateTime", "CreateTime", "LogAppendTime"),
    "message_timestamp_before_max_ms": (NEVER, NEVER, NEVER, 100),
    "message_timestamp_after_max_ms": (3_600_000, 3_600_000, NEVER, 20),
    "cleanup_policy": ("delete", "delete", "delete", "delete", "compact", "compact,delete", ""),
    "compression_type": ("producer", "producer", "producer", "uncompressed"),
    "flush_messages": (NEVER, NEVER, 3, 1),
    "producer_id_expiration_ms": (86_400_000, 500),
    "max_compaction_lag_ms": (NEVER, NEVER, 50, 3),
}
"""The options that histories vary, and their values. No log wants a codec of its own: what the
implementation's libraries and Java's make of records is not what the codecs of histories make.
What leaders compress is compared record by record, in tests of its own."""

LOG_DAMAGES = (*DAMAGES[:4], *DAMAGES[:4], "removed")
LEFTOVERS = (
    (".log", ".swap"), (".log", ".swap"), (".log", ".cleaned"), (".log", ".deleted"),
    (".index", ".swap"), (".timeindex", ".swap"), (".index", ".cleaned"), (".index", ".deleted"),
    (".index", ""), (".timeindex", ""), (".txnindex", ""),
)  # fmt: skip
"""Kind and suffix of a file that a crash left."""
ODD_NAMES = (
    "foo.cleaned", "5.cleaned", "foo.log.cleaned", "foo.swap", "5.swap", "5.foo.swap", ".swap",
    "foo.log.swap", "foo.index.swap", "5.index.swap", "00000000000000000005.foo.swap",
    "00000000000000000005.log.deleted.swap", "00000000000000000005.snapshot.swap", "foo.deleted",
    ".deleted", "00000000000000000000.log.swap.deleted", "0.log.deleted", "foo.snapshot.deleted",
    "00000000000000000005-0000000001.checkpoint.deleted", "5.log", "+5.log", "5.foo.log", "foo.log",
    ".log", "foo.index", "5.index", "5.timeindex", "5.txnindex", "00000000000000000005.log.index",
    "log", "swap", "5.txt", "99999999999999999999.log",
)  # fmt: skip
"""Names that are not as Kafka writes them, or not for such a file."""


# --- the beginning -------------------------------------------------------------------------------


def draw_options(choose: Choose) -> tuple[Value, ...]:
    """Draw the options as (name, value)."""
    return tuple((name, choose.one_of(values)) for name, values in CHOICES.items())


def changed_options(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw the options of another opening: those of the last one, seldom with one that differs."""
    options: Any = situation.opened["options"]
    if situation.state is None:
        roomy = "segment_index_bytes", ROOMY_BYTES
        return tuple(roomy if known[0] == roomy[0] else known for known in options)
    if not choose.one_in(4):
        return tuple(options)
    changed = choose.one_of(tuple(CHOICES))
    value = choose.one_of(CHOICES[changed])
    return tuple((name, value if name == changed else known) for name, known in options)


def _are_known(options: tuple[tuple[str, Value], ...]) -> bool:
    return all(value in CHOICES[name] for name, value in options)


OPTIONS = Only(
    Row(
        Record(
            name=OneOf(tuple(CHOICES)),
            value=OneOf(tuple(value for values in CHOICES.values() for value in values)),
        ),
        len(CHOICES),
    ),
    _are_known,
    "options with the values that histories have for each",
)


def opening_of_log() -> dict[str, Value]:
    """Return the arguments of an opening after a crash, with the first value of each option."""
    return {
        "options": tuple((name, values[0]) for name, values in CHOICES.items()),
        "log_start_offset": 0,
        "recovery_point": 0,
        "last_shutdown_clean": False,
        "draw": 0,
        "now_ms": START_MS,
        "modified_ms": START_MS - 500,
        "damage": (),
    }


def draw_setup(choose: Choose) -> Setup:
    """Draw a directory and the first opening: empty, segments, or one segment that overflows."""
    arguments = opening_of_log() | {
        "options": draw_options(choose),
        "log_start_offset": choose.one_of((0, 0, 0, 40, 2**31 - 5)),
        "last_shutdown_clean": choose.boolean(),
        "draw": choose.integer(0, 5000),
    }
    kind = choose.weighted((6, 3, 1))
    if kind == 0:
        return Setup(arguments)
    if kind == 2:
        arguments["log_start_offset"] = 0
        arguments["last_shutdown_clean"] = not choose.one_in(3)
        return Setup(arguments, _overflowing(choose))
    start: Any = arguments["log_start_offset"]
    return Setup(arguments, _segments(choose, start))


def _segments(choose: Choose, offset: int) -> dict[str, bytes]:
    """Draw one to three segments, with some of their indexes."""
    files: dict[str, bytes] = {}
    for _ in range(choose.integer(1, 3)):
        stem = segment_file_name(offset, "")
        files[f"{stem}.log"] = draw_stored(choose, offset, START_MS, choose.integer(1, 3))
        for kind in (".index", ".timeindex"):
            if choose.one_in(3):
                is_foreign = choose.one_in(4)
                files[stem + kind] = draw_index(choose, offset, kind) if is_foreign else b""
        offset = end_of(files[f"{stem}.log"], offset) + choose.one_of((0, 0, 5))
    if choose.one_in(3):
        files[EPOCHS] = choose.one_of((b"0\n1\n0 0\n", b"0\n2\n0 0\n1 9\n"))
    return files


def _overflowing(choose: Choose) -> dict[str, bytes]:
    """Draw one segment whose offsets are too far apart, with indexes that do not tell."""
    far = INT32_MAX + choose.integer(1, 30)
    log = draw_stored(choose, 0, START_MS, choose.integer(1, 2))
    log += draw_stored(choose, far, START_MS, choose.integer(1, 2))
    stem = segment_file_name(0, "")
    files = {f"{stem}.log": log, f"{stem}.index": b"", f"{stem}.timeindex": b""}
    return {f"{stem}.log": log} if choose.one_in(4) else files


# --- where the log stands ------------------------------------------------------------------------


def _borders(situation: Situation) -> list[int]:
    state = situation.state
    if state is None:
        return [0]
    return [
        state.log_start_offset,
        state.log_end_offset,
        state.high_watermark,
        state.last_stable_offset,
        *state.log_segments.base_offsets(),
    ]


def some_offset(choose: Choose, situation: Situation) -> int:
    """Draw an offset: at, below or beyond a border, inside, or far outside."""
    state, borders = situation.state, _borders(situation)
    kind = choose.weighted((10, 6, 1))
    if kind == 0 or state is None:
        return clamp64(choose.beside(choose.one_of(borders)))
    if kind == 1:
        base = choose.one_of(state.log_segments.base_offsets())
        near = min(base + 30, state.log_end_offset)
        return choose.integer(base, near) if near > base else base
    return choose.one_of((INT64_MIN, -1, INT64_MAX, clamp64(borders[-1] + INT32_MAX)))


def some_cut(choose: Choose, situation: Situation) -> int:
    """Draw where to cut: mostly near the end."""
    state = situation.state
    if state is None or choose.one_in(4):
        return within(some_offset(choose, situation), -1, OFFSET_MAX)
    return max(0, int(state.log_end_offset) - choose.integer(0, 6))


def some_high_watermark(choose: Choose, situation: Situation) -> int:
    """Draw a high watermark: mostly near the end."""
    state = situation.state
    if state is None or choose.one_in(8):
        return some_offset(choose, situation)
    if choose.one_in(6):
        return int(choose.one_of(state.log_segments.base_offsets()))
    return int(state.log_end_offset) - choose.one_of((0, 0, 0, 1, 3, 9))


def some_start(choose: Choose, situation: Situation) -> int:
    """Draw a log start: between the present one and the high watermark, mostly."""
    state = situation.state
    if state is None or choose.one_in(4):
        return some_offset(choose, situation)
    low, high = int(state.log_start_offset), int(state.high_watermark)
    return choose.integer(low, min(high, low + 20)) if high > low else high


def some_new_offset(choose: Choose, situation: Situation) -> int:
    """Draw where to begin anew."""
    return within(some_offset(choose, situation), 0, OFFSET_MAX)


def some_expected(choose: Choose, situation: Situation) -> int | None:
    """Draw which base is expected of a new segment."""
    if not choose.one_in(4):
        return None
    return within(some_offset(choose, situation), 0, OFFSET_MAX)


def some_base(choose: Choose, situation: Situation) -> int:
    """Draw a base offset: of a segment that may overflow, or of another, mostly."""
    state = situation.state
    if state is None or choose.one_in(6):
        return some_offset(choose, situation)
    bases = state.log_segments.base_offsets()
    ends = (*bases[1:], state.log_end_offset)
    wide = [base for base, end in zip(bases, ends, strict=True) if end - base > INT32_MAX]
    return int(choose.one_of(wide or bases))


def some_length(choose: Choose, situation: Situation) -> int:
    """Draw how many bytes to read."""
    return choose.one_of((10_000, 100, 200, 1, 0, 70, INT32_MAX))


def some_timestamp(choose: Choose, situation: Situation) -> int:
    """Draw a timestamp, or a number that stands for an offset."""
    kind = choose.weighted((8, 4, 1))
    if kind == 0:
        return situation.now_ms - choose.integer(-2, 300)
    if kind == 1:
        return choose.one_of((-1, -2, -3, -3, -4))
    return choose.one_of((0, INT64_MAX, INT64_MIN, START_MS))


def some_now(choose: Choose, situation: Situation) -> int:
    """Draw a later time: soon, later, or when something of the log is due, or beside that."""
    if situation.state is not None and choose.boolean():
        due = choose.one_of((_ages_of, _silences_of, _delays_of))(situation.state)
        coming = [time for time in due if time >= situation.now_ms]
        if coming:
            time = choose.one_of(coming) + choose.one_of((0, 0, -1, 1))
            return within(time, 0, TIME_MS.high)
    step = choose.one_of((1, 20, 200, 1_001, 60_001, 0, 604_800_001))
    return within(situation.now_ms + step, 0, TIME_MS.high)


def _ages_of(state: Any) -> list[int]:
    """Return when each segment will be as old as retention allows."""
    limit, times = state.config.retention_ms, list[int]()
    for segment in state.log_segments if limit >= 0 else ():
        known = segment.max_timestamp_and_offset_so_far
        is_timed = known is not None and known.timestamp >= 0
        times.append((known.timestamp if is_timed else segment.log.modified_ms) + limit)
    return times


def _silences_of(state: Any) -> list[int]:
    """Return when each producer will be silent for as long as it may."""
    limit = state.config.producer_id_expiration_ms
    producers = state.producer_state_manager.active_producers.values()
    return [producer.last_timestamp + limit for producer in producers]


def _delays_of(state: Any) -> list[int]:
    """Return when files that wait for their removal may go."""
    return [pending.due_ms for pending in state.local_log.pending_deletions]


# --- opening again -------------------------------------------------------------------------------


def checkpointed_start(choose: Choose, situation: Situation) -> int:
    """Draw the log start that the checkpoint says: the true one, an older or a wrong one."""
    state = situation.state
    if state is None:
        former: Any = situation.opened["log_start_offset"]
        return choose.one_of((0, int(former)))
    known = int(state.log_start_offset)
    if not choose.one_in(6):
        return known
    return within(choose.beside(choose.one_of(_borders(situation))), 0, OFFSET_MAX)


def checkpointed_recovery_point(choose: Choose, situation: Situation) -> int:
    """Draw the recovery point that the checkpoint says: the true one, mostly."""
    state = situation.state
    if state is None:
        return choose.one_of((0, 20))
    if choose.one_in(4):
        return within(some_offset(choose, situation), 0, OFFSET_MAX)
    return int(state.recovery_point)


def draw_damage(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw what happens to files while nothing is open; mostly nothing."""
    names = tuple(situation.files)
    if situation.state is None:  # what stood in the way goes, or no opening might ever succeed
        bad = [name for name in names if _may_stop_loading(name)]
        return tuple((name, "removed", 0, b"") for name in bad[-8:])
    if not names or not choose.one_in(3):
        return ()
    kind = choose.weighted((12, 3, 1))
    if kind == 1:
        return _swap_state(choose, situation)
    if kind == 2:
        return _odd_leftover(choose, names)
    return tuple(_one_damage(choose, names) for _ in range(choose.one_of((1, 1, 1, 2))))


def _may_stop_loading(name: str) -> bool:
    return name.endswith((".index", ".snapshot")) or name == EPOCHS or is_odd(name)


def _one_damage(choose: Choose, names: tuple[str, ...]) -> Damage:
    kind = choose.weighted((6, 4, 3, 2))
    logs = [name for name in names if name.endswith(".log")] or list(names)
    if kind == 0:
        return _broken(choose, choose.one_of((logs[-1], logs[-1], logs[0])), LOG_DAMAGES)
    if kind == 1:
        indexes = [name for name in names if name.endswith("index")] or list(names)
        return _broken(choose, choose.one_of(indexes), DAMAGES)
    if kind == 2:
        others = [n for n in names if n.endswith(".snapshot") or n == EPOCHS] or list(names)
        return _broken(choose, choose.one_of(others), ("cut", "flipped", "removed"))
    return _leftover(choose, logs)


def _broken(choose: Choose, name: str, kinds: tuple[str, ...]) -> Damage:
    return draw_broken(choose, name, kinds, _base_of(name), 200)


def _leftover(choose: Choose, logs: list[str]) -> Damage:
    """Draw a file that a crash left in the middle of something, an index without a log as well."""
    base = _base_of(choose.one_of(logs))
    leftovers = LEFTOVERS if choose.magic_max == MAGIC_NEWEST else LEFTOVERS[:-1]
    kind, suffix = choose.one_of(leftovers)
    if kind != ".log":
        base += choose.one_of((0, 1, 1000)) if not suffix else 0
        return segment_file_name(base, kind + suffix), "replaced", 0, draw_index(choose, base, kind)
    stored = draw_stored(choose, max(0, base), START_MS, choose.one_of((1, 1, 2)))
    return segment_file_name(base, kind + suffix), "replaced", 0, stored


def _base_of(name: str) -> int:
    base_offset = outcome_of(offset_of_name, name)
    return base_offset if isinstance(base_offset, int) else 0


def _swap_state(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw a segment as a crash leaves it while it replaces itself: some of its files are swaps.

    The files that have these names already are still there, or went before. None of an odd name:
    what the oldest releases make of such a swap no behaviour says.
    """
    names = [name for name in situation.files if name.endswith(".log") and not is_odd(name)]
    stem = choose.one_of(names).removesuffix(".log") if names else segment_file_name(0, "")
    suffix = choose.one_of((".swap", ".swap", ".swap", ".cleaned"))
    is_gone, found = choose.boolean(), list[Damage]()
    for kind in KINDS:
        data = situation.files.image(stem + kind)
        if stem + kind not in situation.files or (kind != ".log" and choose.one_in(3)):
            continue
        found.append((stem + kind + suffix, "replaced", 0, data))
        if is_gone:
            found.append((stem + kind, "removed", 0, b""))
    return tuple(found)


def _odd_leftover(choose: Choose, names: tuple[str, ...]) -> tuple[Value, ...]:
    """Draw a file whose name is not as Kafka writes it.

    None that ends a loading beside other leftovers: which of them are gone then, goes by the order
    in which a directory is listed.
    """
    name = choose.one_of(ODD_NAMES)
    is_last = isinstance(outcome_of(offset_of_name, name), Raised)
    if is_last and any(one.endswith((".deleted", ".cleaned", ".swap")) for one in names):
        return ()
    kind = next((one for one in KINDS if one in name), ".index")
    is_log, base = kind == ".log", max(0, _base_of(name))
    data = draw_stored(choose, base, START_MS, 1) if is_log else draw_index(choose, base, kind)
    return ((name, "replaced", 0, data),)


def with_damage(arguments: Mapping[str, Value], images: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files as something broke them before an opening."""
    done: Any = arguments["damage"]
    return damaged(done, "", "", images)


def logs_among(names: Any) -> list[str]:
    """Return the names of logs, whatever stands behind them."""
    return [name for name in names if f"{KINDS[0]}." in f"{name}."]
