# SPDX-License-Identifier: Apache-2.0
"""The verb `lookup`: where an offset lies, which record a time begins with."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    INT64_MAX,
    INT64_MIN,
    Format,
    FormatOption,
    HashSlotsOption,
    ProfileOption,
    check_profile_of,
    known_profile,
    parse_time,
    refuse,
    refuse_unread,
)
from segproof_harness.cli.lookup_answers import AnswerWriter
from segproof_harness.cli.lookup_keys import (
    Asked,
    BeginOption,
    EndOption,
    KeyOption,
    KeysOption,
    MaxOption,
    PhyOffsetOption,
    RawOption,
    ScanOption,
    ShowOption,
    answer_store,
    is_of_rocketmq,
    lines_of,
)

if TYPE_CHECKING:
    from segproof.lookup import OffsetAnswer, TimestampAnswer
    from segproof_model.language.behaviours import Release

    Ask = Callable[..., OffsetAnswer | TimestampAnswer]

OFFSET_FIELDS = (
    "segment_base_offset",
    "index_offset",
    "index_position",
    "batch_base_offset",
    "batch_position",
    "batch_size",
)
TIMESTAMP_FIELDS = ("timestamp", "offset")
NOTHING_ASKED = (
    "nothing asked: give --offset, --timestamp, --offsets or --timestamps, or for a store of"
    " RocketMQ --key, --keys or --phy-offset"
)
STORE_ASKED = (
    "a store of RocketMQ, which is asked with --key, --keys or --phy-offset; --offset and"
    " --timestamp are for Kafka's partitions"
)


OffsetOption = Annotated[
    list[int] | None, typer.Option("--offset", metavar="N", help="An offset; may be repeated.")
]
TimestampOption = Annotated[
    list[int] | None,
    typer.Option(
        "--timestamp",
        metavar="TIME",
        parser=parse_time,
        help="A time, such as 2026-11-21T01:00Z, or milliseconds since 1970; may be repeated.",
    ),
]
OffsetsOption = Annotated[
    str | None,
    typer.Option("--offsets", metavar="FILE", help="Offsets, one per line; - is stdin."),
]
TimestampsOption = Annotated[
    str | None,
    typer.Option("--timestamps", metavar="FILE", help="Times, one per line; - is stdin."),
]
ExplainOption = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Show each step: segment, index slot, position, scan; for keys hash, slot, and why"
        " each entry was taken or left.",
    ),
]


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is asked of a partition."""

    offsets: list[int] | None
    offsets_file: str | None
    timestamps: list[int] | None
    timestamps_file: str | None
    explain: bool

    @property
    def is_asked(self) -> bool:
        """Whether anything is."""
        return bool(self.offsets or self.offsets_file or self.timestamps or self.timestamps_file)


def command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A partition directory, or a RocketMQ store.")
    ],
    offset: OffsetOption = None,
    timestamp: TimestampOption = None,
    offsets: OffsetsOption = None,
    timestamps: TimestampsOption = None,
    key: KeyOption = None,
    keys: KeysOption = None,
    phy_offset: PhyOffsetOption = None,
    begin: BeginOption = None,
    end: EndOption = None,
    max_num: MaxOption = None,
    raw: RawOption = False,
    scan: ScanOption = False,
    show: ShowOption = None,
    explain: ExplainOption = False,
    hash_slots: HashSlotsOption = None,
    profile: ProfileOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Show where offsets, timestamps and keys are found.

    Each has one line, in the order asked. The answer for an offset is the first batch whose last
    offset reaches it. The search begins in the last segment that begins at or below the offset, and
    goes on in the next one. The answer for a timestamp is the first record at or after it, in the
    first segment that reaches it. A line without an answer has nulls and a reason, and the exit
    code is still 0; it is 1 for damaged files. If the checksum of the batch, or message, that was
    found is wrong, the line has the answer and a reason, and says that it is damaged. So it does
    where the offsets of a log do not rise: the answer is the batch that a salvage keeps. With
    --profile the answer is that of the release, which may take damage for the end of the log.

    In a store of RocketMQ, look up keys, as TOPIC#KEY, and offsets of the commit log. The answer
    for a key is the offsets of its messages, newest first. If the store has a commit log, those of
    other keys with the same hash are left out; --raw shows them too, and tells damaged ones on
    stderr. With --profile the answer is that of the release's index: raw, 64 offsets at most.

    --scan reads the whole commit log and no index, also behind damage, and shows each message.

    \b
    Examples:
      segproof lookup my-topic-0 --offset 4711 --explain
      segproof lookup my-topic-0 --timestamp 2026-11-21T01:00Z
      seq 0 100 | segproof lookup my-topic-0 --offsets - --format jsonl
      segproof lookup my-topic-0 --offset 4711 --profile kafka-4.4.0
      segproof lookup store --key TopicTest#order-1 --explain
      segproof lookup store --key TopicTest#order-1 --scan --max 3
    """
    release = known_profile(profile)
    numbers = Numbers(offset, offsets, timestamp, timestamps, explain)
    asked = Asked(
        key or [], keys, phy_offset or [], begin, end, max_num, raw, explain, hash_slots, scan, show
    )
    if not (numbers.is_asked or asked.is_asked):
        refuse(NOTHING_ASKED)
    name = os.fspath(directory)
    refuse_unread(directory)
    if is_of_rocketmq(name):
        if numbers.is_asked:
            refuse(f"{name}: {STORE_ASKED}")
        answer_store(name, asked, release, output_format)
        return
    if asked.is_given:
        refuse(
            f"{name}: no store or index folder of RocketMQ, and --key, --keys, --phy-offset,"
            " --begin, --end, --max, --raw, --scan, --show and --hash-slots are for these"
        )
    _answer_partition(name, numbers, release, output_format)


def _answer_partition(
    name: str, numbers: Numbers, release: "Release | None", output_format: Format
) -> None:
    """Write the answers about a partition; exit code 1 where its files are damaged."""
    check_profile_of(release, "kafka")
    from segproof.errors import SegproofError
    from segproof.lookup import PartitionReader
    from segproof_harness.reading.partition_under_profile import PartitionAsFound

    try:
        if release is None:
            opened: Any = PartitionReader(name)
            guard: Any = closing(opened)
        else:
            opened = PartitionAsFound(name, release)
            guard = nullcontext()
    except SegproofError as error:
        refuse(str(error))
    writer = AnswerWriter(opened, numbers.explain, output_format)
    with guard:
        sane = True
        for targets, ask, names in (
            (
                _asked(numbers.offsets, numbers.offsets_file, _number),
                opened.lookup_offset,
                OFFSET_FIELDS,
            ),
            (
                _asked(numbers.timestamps, numbers.timestamps_file, parse_time),
                opened.lookup_timestamp,
                TIMESTAMP_FIELDS,
            ),
        ):
            for target in targets:
                asked = partial(_fields, ask, target, names, numbers.explain)
                sane &= writer.write(target, names, asked)
    if not sane:
        raise typer.Exit(EXIT_FINDINGS)


def _fields(
    ask: "Ask", target: int, names: tuple[str, ...], explain: bool
) -> tuple[dict[str, Any], bool]:
    """Return the fields of an answer, and whether its batch is sound."""
    answer = ask(target, explain=explain)
    fields = {name: getattr(answer, name) for name in names}
    if answer.reason is not None:
        fields["reason"] = answer.reason
    if answer.is_damaged:
        fields["is_damaged"] = True
    return fields, not answer.is_damaged


def _asked(given: list[int] | None, file: str | None, parse: Callable[[str], int]) -> Iterator[int]:
    """Yield the offsets or times given, then those of the file."""
    for number in given or ():
        yield _int64(number, "the command line")
    if file is None:
        return
    for place, line in lines_of(file, "ascii", "numbers"):
        if not line.strip():
            continue
        try:
            number = parse(line)
        except typer.BadParameter as error:
            refuse(f"{file}: line {place}: {error.message}")
        yield _int64(number, f"{file}: line {place}")


def _number(line: str) -> int:
    try:
        return int(line)
    except ValueError:
        raise typer.BadParameter(f"{line.strip()[:40]!r} is no number") from None


def _int64(number: int, where: str) -> int:
    if not INT64_MIN <= number <= INT64_MAX:
        refuse(f"{where}: {number} does not fit 64 bits")
    return number
