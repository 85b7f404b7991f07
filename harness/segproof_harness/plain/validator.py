# SPDX-License-Identifier: Apache-2.0
"""Hold the plain validator against the older one: the same records, options, and answers.

    python -m segproof_harness.plain.validator [--calls 2000] [--first 0] [--release NAME ...]
        [--alone] [--kinds]

Records are drawn as a producer's, a coordinator's or a leader's: of every magic and codec, right,
damaged, damaged with a checksum that is right again, wrapped wrongly.
"""

import argparse
import dataclasses
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

from segproof_harness.codecs import CODECS
from segproof_harness.descriptions.batches import draw_damage
from segproof_harness.generation import (
    INT64_MAX,
    INT64_MIN,
    MAGIC_NEWEST,
    Choose,
    RandomChoose,
    one_in,
    weighted,
)
from segproof_harness.plain.batches import CODECS as PLAIN_CODECS
from segproof_model.kafka.broker.log_validator import AppendAnalysis, LogValidator
from segproof_model.kafka.compression import COMPRESSIONS, crc32, crc32c, deflate
from segproof_model.kafka.early_validator import early_validated
from segproof_model.kafka.format.log_config import LogConfig as PlainConfig
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.legacy_record import encode_message
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_validator import analyzed, order_refusal, validated
from segproof_model.kafka.record_batch import (
    Record,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.kafka.record_file import scan_memory
from segproof_model.language.behaviours import Release
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import Refused, outcome_of
from segproof_model.profiles import Profile, profile_named
from segproof_model.releases import KAFKA, RELEASES

NOW_MS = 1_000_000
CODEC_NAMES = (*COMPRESSIONS, "producer", "producer", "producer", "producer", "uncompressed")
EDGES = (
    -1, -2, 0, NOW_MS, NOW_MS + 20, NOW_MS + 21, NOW_MS - 100, NOW_MS - 101, INT64_MAX, INT64_MIN,
    INT64_MIN + NOW_MS,
)  # fmt: skip
HEADERS = (
    # Fields of batches of magic 2: their place, and what may stand there.
    (21, b"\1"),  # attributes without a meaning
    (22, b"\x20"),  # a control batch, not compressed
    (22, b"\x88"),
    (23, b"\xff\xff\xff\xff"),  # last offset - base offset
    (43, bytes(8)),  # the producer
    (43, bytes(8) + b"\0\1\xff\xff\xff\xff"),
    (43, b"\xff" * 14),
    (53, b"\xff\xff\xff\xff"),  # the first sequence number
    (57, bytes(4)),  # the number of records
)


class Call(NamedTuple):
    """What both are given."""

    records: bytes
    options: dict[str, Any]
    origin: Any
    leader_epoch: int
    first_offset: int
    named: int | None
    """Of how many offsets an error of their order tells, asked for alone; None: not asked for."""


# --- drawn calls ---------------------------------------------------------------------------------


def drawn_call(seed: int, magic_max: int) -> Call:
    """Draw a call."""
    choose = RandomChoose("validator", seed)
    choose.magic_max = magic_max
    origin = ("client", "client", "client", "coordinator", "replication")[choose.integer(0, 4)]
    options = {
        "message_timestamp_type": choose.one_of(("CreateTime", "CreateTime", "LogAppendTime")),
        "message_timestamp_before_max_ms": choose.one_of((INT64_MAX, INT64_MAX, 100)),
        "message_timestamp_after_max_ms": choose.one_of((3_600_000, INT64_MAX, 20)),
        "cleanup_policy": choose.one_of(("delete", "delete", "delete", "compact", "")),
        "compression_type": choose.one_of(CODEC_NAMES),
        "max_message_bytes": choose.one_of((1_048_588, 1_048_588, 1_048_588, 150)),
    }
    return Call(
        drawn_records(choose, origin),
        options,
        origin,
        choose.one_of((0, 3, 3)),
        choose.one_of((0, 7, 2**40)),
        choose.one_of((None, None, 1, 3, 10)),
    )


def drawn_records(choose: Choose, origin: str) -> bytes:
    """Draw one or more batches, or messages; seldom less than whole ones."""
    magic = choose.one_of(range(choose.magic_max + 1))
    magic = magic if one_in(choose, 2) else choose.magic_max
    count = choose.one_of((1, 1, 1, 1, 2, 3))
    records, offset = b"", 0 if origin == "client" else choose.one_of((0, 0, 50))
    for _ in range(count):
        now = magic if not one_in(choose, 12) else choose.integer(0, choose.magic_max)
        batch = drawn_batch(choose, now, offset)
        for _ in range(choose.one_of((0, 0, 0, 0, 0, 0, 1, 1, 2))):
            batch = damaged(choose, batch)
        records += batch
        offset += choose.one_of((0, 1, 4)) if magic < 2 or origin == "replication" else 0
    return records[: choose.integer(0, len(records))] if one_in(choose, 40) else records


def drawn_batch(choose: Choose, magic: int, offset: int) -> bytes:
    """Draw a batch, or a message, of this magic."""
    if magic < 2:
        return (
            drawn_wrapper(choose, magic, offset)
            if one_in(choose, 3)
            else drawn_message(choose, magic, offset)
        )
    kind = weighted(choose, (12, 2, 1))
    if kind == 1:
        return written(
            write_end_transaction_marker(
                "COMMIT",
                offset=offset,
                timestamp=NOW_MS,
                producer_id=5,
                producer_epoch=0,
                coordinator_epoch=3,
                partition_leader_epoch=choose.one_of((-1, 3, 4)),
            )
        )
    if kind == 2:
        return written(write_empty_batch(offset, offset + choose.integer(0, 2), NOW_MS))
    is_given = one_in(choose, 5)
    more: dict[str, Any] = {}
    if one_in(choose, 3):
        more = {
            "producer_id": 5,
            "producer_epoch": 1,
            "base_sequence": choose.integer(0, 9),
            "is_transactional": choose.boolean(),
        }
    records = drawn_values(choose, offset, is_sparse=one_in(choose, 4))
    is_longer = one_in(choose, 10)
    return written(
        write_batch(
            records,
            base_offset=offset,
            compression=choose.one_of((*COMPRESSIONS, "none", "none")),
            timestamp_type="LogAppendTime" if is_given else "CreateTime",
            log_append_time=NOW_MS if is_given else None,
            partition_leader_epoch=choose.one_of((-1, 3, 4)),
            last_offset=records[-1].offset + 2 if is_longer else None,
            codecs=CODECS,
            **more,
        )
    )


def drawn_values(choose: Choose, offset: int, *, is_sparse: bool) -> list[Record]:
    """Draw records, some without a key, a time, or with a time far from now."""
    found = []
    offset += choose.integer(0, 2) if is_sparse else 0
    for _ in range(choose.one_of((1, 1, 2, 3))):
        timestamp = max(-1, drawn_timestamp(choose))
        value = None if one_in(choose, 6) else choose.data(choose.integer(0, 9))
        found.append(Record(offset, timestamp, drawn_key(choose), value))
        offset += choose.integer(1, 3) if is_sparse else 1
    return found


def drawn_timestamp(choose: Choose) -> int:
    """Draw a timestamp near the limits of now, or none."""
    is_near = not one_in(choose, 4)
    return NOW_MS - choose.integer(0, 60) if is_near else choose.one_of(EDGES)


def drawn_key(choose: Choose) -> bytes | None:
    """Draw a key."""
    return None if one_in(choose, 8) else b"key"


def drawn_message(choose: Choose, magic: int, offset: int, is_inner: bool = False) -> bytes:
    """Draw a message of magic 0 or 1; inside a wrapper it may be wrong in itself."""
    attributes = choose.one_of((0, 0, 0, 0, 8 * magic))
    if is_inner and one_in(choose, 30):
        attributes += choose.integer(1, 7)
    message = encode_message(
        magic, offset, drawn_timestamp(choose), attributes, drawn_key(choose), b"value"
    )
    if one_in(choose, 10):
        at = 26 if magic else 18
        cut = at + 4 if one_in(choose, 3) else at
        length = choose.one_of((0, 1, 100, -1)).to_bytes(4, "big", signed=True)
        message = sized(message[:at] + length + message[at + 4 : cut + choose.integer(0, 20)])
    if is_inner and one_in(choose, 12):
        message = message[:12] + b"\1\2\3\4" + message[16:]
    return message


def drawn_wrapper(choose: Choose, magic: int, offset: int) -> bytes:
    """Draw a wrapper of messages, which may count wrongly, or be of another magic."""
    codec = choose.one_of((1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5))
    count = choose.one_of((1, 2, 3, 2, 3, 0 if one_in(choose, 4) else 1))
    first, step = choose.one_of(((0, 1), (0, 1), (0, 1), (offset, 1), (1, 1), (0, 2)))
    inner = b""
    for number in range(count):
        at = magic if not one_in(choose, 15) else 1 - magic
        inner += drawn_message(choose, at, first + number * step, is_inner=True)
    value: Any = deflate(min(codec, 4), inner, magic, CODECS)
    assert isinstance(value, bytes)
    if one_in(choose, 20):
        value = choose.one_of((None, b"", value[:-3]))
    attributes = codec + choose.one_of((0, 0, 0, 8 * magic))
    last = first + (count - 1) * step
    shown = choose.one_of((last, last, last, offset + last, 0, 9))
    return encode_message(magic, max(0, shown), drawn_timestamp(choose), attributes, None, value)


def written(batch: Any) -> bytes:
    """Return what was written."""
    assert isinstance(batch, bytes), batch
    return batch


def damaged(choose: Choose, batch: bytes) -> bytes:
    """Return the batch with something written over it; mostly its checksum is made right again."""
    position, data = draw_damage(choose, batch)
    if batch[16] == MAGIC_NEWEST and choose.boolean():
        position, data = choose.one_of(HEADERS)
    elif one_in(choose, 3):
        position = choose.integer(17 if batch[16] < 2 else 21, len(batch) - 1)
        data = choose.data(1)
    batch = batch[:position] + data + batch[position + len(data) :]
    return batch if one_in(choose, 5) else checked(batch)


def sized(message: bytes) -> bytes:
    """Return a message with its size and checksum made right."""
    return checked(message[:8] + (len(message) - 12).to_bytes(4, "big") + message[12:])


def checked(batch: bytes) -> bytes:
    """Return a batch or message with its checksum made right."""
    if batch[16] < 2:
        return batch[:12] + crc32(batch[16:]).to_bytes(4, "big") + batch[16:]
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


# --- both answers --------------------------------------------------------------------------------


def of_old(call: Call, profile: Profile) -> list[Any]:
    """Return what the older functions answer."""
    config = LogConfig(**call.options)
    scan = scan_memory(call.records, codecs=CODECS, profile=profile)
    answers: list[Any] = []
    if call.named is not None:
        answers.append(kind_of(order_refusal(scan, profile, call.named)))
    info = analyzed(scan, call.origin, call.leader_epoch, 4, config.max_message_bytes, profile)
    answers.append(kind_of(info) if isinstance(info, Raised) else tuple(info))
    if isinstance(info, Raised) or not info.valid_bytes or call.origin == "replication":
        return answers
    batches = scan_memory(call.records[: info.valid_bytes], codecs=CODECS, profile=profile).batches
    given = batches, call.first_offset, NOW_MS, config
    if profile.leader_keeps_messages:
        done = early_validated(*given, CODECS, profile)
    else:
        done = validated(*given, call.leader_epoch, call.origin, CODECS, profile)
    if isinstance(done, Raised):
        return [*answers, kind_of(done)]
    maximum = done.offset_of_maximum if profile.leader_indexes_record else done.last_offset
    return [*answers, tuple(done._replace(offset_of_maximum=maximum))]


def kind_of(raised: Any) -> str:
    """Return how an error is told."""
    return f"refused: {raised.kind}"


def of_plain(call: Call, release: Release) -> list[Any]:
    """Return what the plain classes answer."""
    config = PlainConfig(**call.options)
    records = release.kind(MemoryRecords)(call.records, codecs=PLAIN_CODECS)
    limit = config.max_message_bytes
    analysis = release.kind(AppendAnalysis)(records, call.origin, call.leader_epoch, limit)
    answers: list[Any] = []
    try:
        if call.named is not None:
            answers.append(kind_of(outcome_of(analysis.refuse_order, call.named)))
        info = analysis.analyze_and_validate_records(4)
        answers.append(tuple(info))
        if info.valid_bytes and call.origin != "replication":
            valid = release.kind(MemoryRecords)(
                call.records[: info.valid_bytes], codecs=PLAIN_CODECS
            )
            done = release.kind(LogValidator)(
                valid, NOW_MS, config, call.leader_epoch, call.origin
            ).validate_messages_and_assign_offsets(call.first_offset)
            answers.append(tuple(done))
    except Refused as error:
        answers.append(kind_of(error))
    except Exception:
        answers.append(traceback.format_exc()[-1500:])
    return answers


# --- the comparison ------------------------------------------------------------------------------


class Held:
    """How one release was held against the older functions."""

    def __init__(self, release: Release, profile: Profile) -> None:
        self.release, self.profile = release, profile
        self.kinds: Counter[str] = Counter()
        self.answers = self.differences = 0
        self.seconds = {"old": 0.0, "plain": 0.0}

    def compare(self, seed: int) -> None:
        """Give both the same call, and print where they part first."""
        call = drawn_call(seed, 2 if self.profile.magic_2_is_written else 1)
        begun = perf_counter()
        expected = of_old(call, self.profile)
        middle = perf_counter()
        actual = of_plain(call, self.release)
        self.seconds["old"] += middle - begun
        self.seconds["plain"] += perf_counter() - middle
        self.answers += len(expected)
        for answer in expected:
            self.kinds[answer if isinstance(answer, str) else f"{len(answer)} values"] += 1
        if expected != actual:
            self.differences += 1
            if self.differences == 1:
                print(f"  seed {seed} {call}\n    old   {expected}\n    plain {actual}")

    def shown(self) -> str:
        """Return the figures."""
        speed = {who: round(self.answers / (one or 1)) for who, one in self.seconds.items()}
        return (
            f"{self.release.name}: {self.answers} answers, {self.differences} differences;"
            f" per second {speed}"
        )


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--release", nargs="*", default=None)
    parser.add_argument("--alone", action="store_true", help="each behaviour on the newest")
    parser.add_argument("--kinds", action="store_true", help="how often each answer was given")
    given = parser.parse_args()
    found = 0
    for release, profile in chosen(given.release, given.alone):
        held = Held(release, profile)
        for seed in range(given.first, given.first + given.calls):
            held.compare(seed)
        print(held.shown(), flush=True)
        if given.kinds:
            print(f"  {dict(sorted(held.kinds.items()))}")
        found += held.differences
    sys.exit(1 if found else 0)


def chosen(names: list[str] | None, is_alone: bool) -> Iterator[tuple[Release, Profile]]:
    """Yield each release with its profile; alone, the newest with one behaviour and one flag."""
    if not is_alone:
        for name in names or ["segproof", *[f"kafka-{number}" for number in KAFKA]]:
            yield RELEASES[name], profile_named(name)
        return
    newest = RELEASES[f"kafka-{KAFKA[0]}"]
    for name in FLAGS:
        moved = (name, *COMPANY.get(name, ()))
        behaviours = tuple(one for one in newest.order if one.__name__ in moved)
        release = dataclasses.replace(newest, name=" with ".join(moved), behaviours=behaviours)
        yield (
            release,
            dataclasses.replace(profile_named(newest.name), **dict(FLAGS[one] for one in moved)),
        )


FLAGS: dict[str, tuple[str, Any]] = {
    # behaviour: its flag, and the value with it
    "OrderIsCheckedLast": ("order_checked_each_batch", False),
    "FollowerPassesEpoch": ("follower_knows_epoch", False),
    "LeaderIndexesRecord": ("leader_indexes_record", True),
    "OneLimitForBothSides": ("early_has_own_limit", False),
    "GivenTimeIsRefused": ("given_time_is_refused", True),
    "FirstRefusedNamesError": ("first_refused_names_error", True),
    "UncountedIsRefused": ("uncounted_batch", "refused"),
    "UncountedIsRewritten": ("uncounted_batch", "rewritten"),
    "SeveralBatchesAreTaken": ("leader_takes_one_batch", False),
    "MagicsMayDiffer": ("batches_share_magic", False),
    "CountIsNotCompared": ("leader_compares_count", False),
    "LeaderKeepsMessages": ("leader_keeps_messages", True),
    "MissingTimeIsCompared": ("missing_time_is_taken", False),
    "OrderErrorNamesNothing": ("order_error_names_records", False),
}
COMPANY = {
    # The older functions do not say what these are without the others.
    "SeveralBatchesAreTaken": ("LeaderIndexesRecord",),
    "LeaderKeepsMessages": ("LeaderIndexesRecord", "GivenTimeIsRefused"),
    "MissingTimeIsCompared": (
        "LeaderKeepsMessages",
        "LeaderIndexesRecord",
        "GivenTimeIsRefused",
    ),
}

if __name__ == "__main__":
    main()
