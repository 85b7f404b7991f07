# SPDX-License-Identifier: Apache-2.0
"""What the verb `lookup` does with a store of RocketMQ: keys, and offsets of the commit log."""

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    check_profile_of,
    reason_of,
    refuse,
    summarise,
    write_line,
    write_row,
)

if TYPE_CHECKING:
    from segproof.lookup_answers import LookupStep
    from segproof_model.language.behaviours import Release

LINE_CHARACTERS_MAX = 1000
"""A number of 64 bits takes 20; a device, or a file of something else, may have no line end."""
INT64_MAX = 2**63 - 1
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
        "--begin", metavar="MS", min=-(2**63), max=INT64_MAX,
        help="For keys: stored at this time or later, in the index's seconds.",
    ),
]  # fmt: skip
EndOption = Annotated[
    int | None,
    typer.Option(
        "--end", metavar="MS", min=-(2**63), max=INT64_MAX,
        help="For keys: stored at this time or earlier.",
    ),
]  # fmt: skip
MaxOption = Annotated[
    int | None,
    typer.Option("--max", metavar="N", min=0, help="For keys: offsets at most. Default: 64."),
]
RawOption = Annotated[
    bool,
    typer.Option("--raw", help="For keys: every entry of the key's hash, as a broker answers."),
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

    @property
    def is_asked(self) -> bool:
        """Whether anything is."""
        return bool(self.keys or self.keys_file or self.phy_offsets)

    @property
    def is_given(self) -> bool:
        """Whether anything is that is for stores only."""
        limits = (self.begin, self.end, self.max_num, self.hash_slots)
        return self.is_asked or self.raw or any(each is not None for each in limits)

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
    from segproof.verifying.rocketmq.places import place_of

    return place_of(name, REAL_FILES) is not None


def answer_store(name: str, asked: Asked, release: "Release | None", output_format: Format) -> None:
    """Write the answers about a store; exit code 1 where its files are damaged."""
    check_profile_of(release, "rocketmq")
    from segproof.errors import SegproofError
    from segproof.store_lookup import StoreReader
    from segproof_harness.reading.stores import StoreAsFound

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
    sane = True
    for key in _keys(asked):
        sane &= _answer_key(key, asked, reader, output_format)
    for offset in asked.phy_offsets:
        sane &= _answer_offset(offset, reader, output_format)
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


def _answer_key(target: str, asked: Asked, reader: Any, output_format: Format) -> bool:
    """Write the answer for one key; return whether the data allowed one."""
    from segproof.errors import SegproofError

    row: dict[str, Any] = {"target": target, "phy_offsets": None}
    steps: tuple[LookupStep, ...] = ()
    sane = True
    try:
        answer = reader.lookup_key(target, *asked.window, raw=asked.raw, explain=asked.explain)
    except SegproofError as error:
        row["reason"] = str(error)
        sane, steps = False, reader.steps if asked.explain else ()
    except OSError as error:
        row["reason"] = reason_of(error)
        sane = False
    else:
        steps = answer.steps
        row["phy_offsets"] = list(answer.phy_offsets)
        sane = not answer.unreadable
        if answer.reason is not None:
            row |= {"phy_offsets": row["phy_offsets"] or None, "reason": answer.reason}
    if output_format is Format.JSONL and asked.explain:
        row["steps"] = [asdict(step) for step in steps]
    write_row(row, output_format)
    if output_format is Format.TEXT:
        for step in steps:
            write_line(f"  {_told(step)}")
    return sane


def _answer_offset(target: int, reader: Any, output_format: Format) -> bool:
    """Write the message at an offset of the log; return whether the data allowed an answer."""
    from segproof.errors import SegproofError
    from segproof_harness.reading.store_rows import record_row

    row: dict[str, Any] = {"target": target, "phy_offset": None}
    sane = True
    try:
        message = reader.look_message(target)
    except SegproofError as error:
        row["reason"] = str(error)
        sane = False
    except OSError as error:
        row["reason"] = reason_of(error)
        sane = False
    else:
        if message is None:
            row["reason"] = _why_no_message(target, reader)
        else:
            row |= record_row(message, target, True)
    write_row(row, output_format)
    return sane


def _why_no_message(target: int, reader: Any) -> str:
    log = reader.log
    if log is not None and target < log.min_offset:
        return f"the commit log begins at {log.min_offset}"
    if log is not None and target >= log.max_offset:
        return f"the commit log ends before {log.max_offset}"
    if log is not None and log.file_of(target) is None:
        return "the file of the commit log that held this offset is missing"
    return "no message begins here"


def _told(step: "LookupStep") -> str:
    """Return a step in words."""
    facts, name = step.facts, os.path.basename(step.path)
    if step.action == "hash":
        return f"hash: {facts['key']} has {facts['key_hash']}"
    if step.action == "no-log":
        return "there is no commit log: other keys of the same hash count too"
    if step.action == "slot":
        head = f"entry {facts['entry']} is the newest" if facts["entry"] else "it is empty"
        return f"{name}: slot {facts['slot']} of {facts['slots']}: {head}"
    if step.action == "entry":
        return (
            f"{name}: entry {facts['index']}: hash {facts['key_hash']}, offset"
            f" {facts['phy_offset']}, time {facts['time']}, before it {facts['prev_index']};"
            f" taken: {facts['taken']}"
        )
    if step.action == "end":
        return f"{name}: here it ends: {facts['why']}"
    if facts["entries"] == 0:
        return f"{name}: it has no entry"
    return (
        f"{name}: {facts['entries']} entries, {facts['begin_timestamp']} to"
        f" {facts['end_timestamp']}; asked: {facts['taken']}"
    )
