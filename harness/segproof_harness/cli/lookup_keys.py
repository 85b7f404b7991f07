# SPDX-License-Identifier: Apache-2.0
"""What the verb `lookup` does with a store of RocketMQ: keys, and offsets of the commit log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof.counts import plural
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    INT64_MAX,
    Format,
    check_profile_of,
    complain,
    parse_time,
    progress,
    refuse,
    summarise,
)
from segproof_harness.cli.lookup_answers import AnswerWriter
from segproof_harness.cli.lookup_messages import message_rows
from segproof_harness.reports.bytes_as_text import BASE64, BytesAs, Encoders, encoder
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from segproof_model.language.behaviours import Release

LINE_CHARACTERS_MAX = 1000
"""A number of 64 bits takes 20; a device, or a file of something else, may have no line end."""
TOLD_MESSAGES = 8
"""At most this many damaged messages of one key are told one by one."""
MAX_DEFAULT = 64
"""What a broker answers at most."""

KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="TOPIC#KEY", help="A key of a store; may be repeated."),
]
KeysOption = Annotated[
    str | None,
    typer.Option("--keys", metavar="FILE", help="Keys, one per line, UTF-8; - is stdin."),
]
PhyOffsetOption = Annotated[
    list[int] | None,
    typer.Option(
        "--phy-offset", metavar="N", min=0, max=INT64_MAX,
        help="An offset of a store's commit log: shows the message; may be repeated.",
    ),
]  # fmt: skip
BeginOption = Annotated[
    int | None,
    typer.Option(
        "--begin", metavar="TIME", parser=parse_time,
        help="For keys: stored at this time or later, in the index's seconds.",
    ),
]  # fmt: skip
EndOption = Annotated[
    int | None,
    typer.Option(
        "--end", metavar="TIME", parser=parse_time,
        help="For keys: stored at this time or earlier.",
    ),
]  # fmt: skip
MaxOption = Annotated[
    int | None,
    typer.Option("--max", metavar="N", min=0, help="For keys: offsets at most. Default: 64."),
]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="For keys: every entry of the key's hash, as a broker answers. Damaged messages are "
        "told on stderr, and the exit code is 1.",
    ),
]
ScanOption = Annotated[
    bool,
    typer.Option(
        "--scan",
        help="For keys: read the whole commit log and no index, as where the index is lost.",
    ),
]
ShowOption = Annotated[
    bool | None,
    typer.Option(
        "--show/--no-show",
        help="For keys: show each message too, with times, properties and body."
        " Default: with --scan, as text.",
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a store."""

    keys: list[str]
    keys_file: str | None
    phy_offsets: list[int]
    begin: int | None
    end: int | None
    max_num: int | None
    raw: bool
    explain: bool
    hash_slots: int | None
    scan: bool = False
    show: bool | None = None

    @property
    def is_asked(self) -> bool:
        """Whether anything is."""
        return bool(self.keys or self.keys_file or self.phy_offsets)

    @property
    def is_given(self) -> bool:
        """Whether anything is that is for stores only."""
        limits = (self.begin, self.end, self.max_num, self.hash_slots)
        is_any = self.is_asked or self.raw or self.scan or self.show is not None
        return is_any or any(each is not None for each in limits)

    @property
    def window(self) -> tuple[int, int, int]:
        """Begin, end, and how many offsets at most."""
        return (
            0 if self.begin is None else self.begin,
            INT64_MAX if self.end is None else self.end,
            MAX_DEFAULT if self.max_num is None else self.max_num,
        )


def is_of_rocketmq(name: str) -> bool:
    """Return whether a path is a store of RocketMQ, a folder of index files, or one of them.

    Raises: OSError.
    """
    from segproof.files import REAL_FILES
    from segproof.reading.store_paths import place_of

    return place_of(name, REAL_FILES) is not None


def answer_store(name: str, asked: Asked, release: "Release | None", output_format: Format) -> None:
    """Write the answers about a store; exit code 1 where its files are damaged."""
    check_profile_of(release, "rocketmq")
    from segproof.errors import SegproofError
    from segproof.store_lookup import StoreReader
    from segproof_harness.reading.store_under_profile import StoreAsFound

    if asked.scan and (asked.raw or release is not None):
        refuse("--scan asks no index: leave --raw and --profile out")

    try:
        if release is None:
            reader: Any = StoreReader(name, hash_slot_num=asked.hash_slots)
        else:
            reader = StoreAsFound(name, release, hash_slot_num=asked.hash_slots)
    except SegproofError as error:
        refuse(str(error))
    asks_keys = bool(asked.keys or asked.keys_file)
    if asks_keys and reader.log is None and not asked.raw and release is None:
        summarise(
            "there is no commit log here: answers are of the index alone, with other keys of the"
            " same hash"
        )
    if reader.log is None and (asked.scan or (asked.show and asks_keys)):
        refuse(f"{name}: there is no commit log here, which holds the messages")
    show = asked.scan and output_format is Format.TEXT if asked.show is None else asked.show
    sane = True
    writer = AnswerWriter(reader, asked.explain, output_format)
    for key, ask in _scanned(asked, reader) if asked.scan else _asked_of_index(asked, reader):
        answered = partial(_key_fields, ask, reader if show else None)
        if asked.raw or release is not None:
            answered = partial(_with_damage_told, answered, key, reader)
        sane &= writer.write(key, ["phy_offsets"], answered)
    writer = AnswerWriter(reader, False, output_format)
    is_text = output_format is Format.TEXT
    encoders = Encoders(value=encoder(BytesAs.AUTO, quoted=True)) if is_text else BASE64
    for offset in asked.phy_offsets:
        sane &= writer.write(
            offset, ["phy_offset"], partial(_message_fields, offset, reader, encoders)
        )
    if not sane:
        raise typer.Exit(EXIT_FINDINGS)


def lines_of(file: str, encoding: str, what: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of a file; refuse what can't be read."""
    if file == "-" and sys.stdin is None:
        refuse("standard input: closed")
    try:
        with (
            nullcontext(sys.stdin) if file == "-" else open(file, encoding=encoding, newline="\n")
        ) as lines:
            for place, line in enumerate(
                iter(lambda: lines.readline(LINE_CHARACTERS_MAX + 1), ""), 1
            ):
                if len(line) > LINE_CHARACTERS_MAX:
                    refuse(f"{file}: line {place}: more than {LINE_CHARACTERS_MAX} characters")
                yield place, line
    except UnicodeDecodeError:
        refuse(f"{file}: not a text of {what}")
    except OSError as error:
        refuse(reason_of(error))


def _keys(asked: Asked) -> Iterator[str]:
    """Yield the keys given, then those of the file."""
    for key in asked.keys:
        yield _whole(key, "the command line")
    if asked.keys_file is not None:
        for place, line in lines_of(asked.keys_file, "utf-8", "keys"):
            key = line.removesuffix("\n").removesuffix("\r")
            if key:
                yield _whole(key, f"{asked.keys_file}: line {place}")


def _whole(key: str, where: str) -> str:
    if "#" not in key:
        refuse(f"{where}: {key[:60]!r} is no key: give TOPIC#KEY")
    return key


def _asked_of_index(asked: Asked, reader: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield each key, and what asks the index for it."""
    for key in _keys(asked):
        yield (
            key,
            partial(reader.lookup_key, key, *asked.window, raw=asked.raw, explain=asked.explain),
        )


def _scanned(asked: Asked, reader: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield each key, and what gives its answer; the commit log is read once for all of them."""
    keys = list(_keys(asked))
    if not keys:
        return
    with progress("scan") as show:
        answers = reader.scan_keys(keys, *asked.window, on_progress=show, explain=asked.explain)
    for key in keys:
        yield key, partial(answers.__getitem__, key)


def _key_fields(ask: Callable[[], Any], messages_of: Any) -> tuple[dict[str, Any], bool]:
    """Return the fields of the answer for a key, and whether all its messages are read.

    With the reader as `messages_of` the messages are among the fields.
    """
    answer = ask()
    offsets = list(answer.phy_offsets)
    fields: dict[str, Any] = {"phy_offsets": offsets}
    if answer.reason is not None:
        fields = {"phy_offsets": offsets or None, "reason": answer.reason}
    if answer.damaged:
        fields["damaged"] = list(answer.damaged)
    if messages_of is not None:
        fields["messages"] = list(message_rows(messages_of, answer.phy_offsets))
    is_sound = not (answer.unreadable or answer.misleading or answer.damaged)
    return fields, is_sound and not answer.damaged_bytes


def _with_damage_told(
    answered: Callable[[], tuple[dict[str, Any], bool]], key: str, reader: Any
) -> tuple[dict[str, Any], bool]:
    """Return the fields of a broker's answer, and tell the messages of it that are damaged.

    The fields stay those of the broker, which reads no message: the damage is told on stderr.
    """
    fields, is_sound = answered()
    told = 0
    for offset in dict.fromkeys(fields["phy_offsets"] or ()):
        damage = reader.damage_at(offset)
        if damage is not None:
            told += 1
            if told <= TOLD_MESSAGES:
                complain(f"{key}: {damage}")
    if told > TOLD_MESSAGES:
        complain(f"{key}: {plural(told - TOLD_MESSAGES, 'more message')} of it like these")
    return fields, is_sound and not told


def _message_fields(target: int, reader: Any, encoders: Encoders) -> tuple[dict[str, Any], bool]:
    """Return the fields of the message at an offset of the log, or why none is there."""
    from segproof_harness.reading.store_file_rows import record_row

    message = reader.look_message(target)
    if message is None:
        why, (unread, _) = _why_no_message(target, reader.log), reader.unread_rests()
        return {"reason": f"{why}; {unread}" if unread else why}, not unread
    row = record_row(message, target, True, encoders)
    if row["crc_valid"]:
        return row, True
    return {**row, "reason": "the checksum of its body is wrong: it is damaged"}, False


def _why_no_message(target: int, log: Any) -> str:
    if log is not None and target < log.min_offset:
        return f"the commit log begins at {log.min_offset}"
    if log is not None and target >= log.max_offset:
        return f"the commit log ends before {log.max_offset}"
    if log is not None and log.file_of(target) is None:
        return "the file of the commit log that held this offset is missing"
    return "no message begins here"
