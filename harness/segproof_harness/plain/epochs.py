# SPDX-License-Identifier: Apache-2.0
"""Hold plain epochs, checkpoints and partition.metadata against the older ones, damage included.

python -m segproof_harness.plain.epochs [--seeds 100] [--first 0] [--release NAME ...] [--alone]
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from segproof_harness.plain import pairs
from segproof_harness.plain.pairs import Flags, Pair, Setting, held
from segproof_model.directory import Directory
from segproof_model.kafka import checkpoint_file as old
from segproof_model.kafka.broker import checkpoint_deviations as deviations
from segproof_model.kafka.broker import checkpoint_file as plain
from segproof_model.kafka.broker import checkpoint_releases as releases
from segproof_model.kafka.broker import epoch_releases
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.partition_metadata_file import PartitionMetadataFile
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache as OldEpochs
from segproof_model.kafka.partition_metadata_file import PartitionMetadataFile as OldMetadata
from segproof_model.language.files import Files
from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import ErrorKind, Step
from segproof_model.language.states import apply, outcome_of
from segproof_model.laws.kafka.broker import (  # noqa: F401
    leader_epoch_cache as epoch_laws,
)
from segproof_model.laws.kafka.broker import (  # noqa: F401
    partition_metadata_file as metadata_laws,
)
from segproof_model.laws.register import Transition, broken_step_laws

OLDEST: Flags = {"epoch_rules": "1.1"}
ALONE: list[Any] = [
    ((releases.MetadataVersionIsExact,), {"metadata_version_is_exact": True}, {}),
    ((releases.EntryNumberIsIoError,), {"entry_number_kind": ErrorKind.IO_ERROR}, {}),
    ((releases.TextDamageIsIoError,), {"text_damage_is_io_error": True}, {}),
    ((deviations.UnreadableTextIsRefused,), {"unreadable_text_is_refused": True}, {}),
    ((epoch_releases.EpochTruncationIsWritten,), {"epoch_truncation_is_deferred": False}, {}),
    ((epoch_releases.LoadedEpochsAreNotChecked,), {"epoch_rules": "2.0"}, {}),
    ((epoch_releases.EpochThatConflictsIsIgnored,), {}, {"assign": OLDEST}),
    ((epoch_releases.FirstEpochDecidesOnTruncation,), {}, {"truncate_from_start": OLDEST}),
    (
        (epoch_releases.RequestedEpochIsAnswered,),
        {},
        {"end_offset_for": OLDEST, "latest_epoch": OLDEST},
    ),
    (
        (
            epoch_releases.LoadedEpochsAreNotChecked,
            epoch_releases.EpochThatConflictsIsIgnored,
            epoch_releases.FirstEpochDecidesOnTruncation,
            epoch_releases.RequestedEpochIsAnswered,
        ),
        OLDEST,
        {},
    ),
]
NUMBERS = (
    "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "+5", "007", "", "x", "1_0", "0x1",
    "\u0663", "\uff11", "\U0001d7ce", "-", "+-1", "0" * 500 + "1", "9" * 500,
)  # fmt: skip
TOPICS = ("t", "a.b", "__x", "", "a b", "a\nb", "\ud800", "\x85", "t-0")
GOLDEN = Path(__file__).parents[3] / "tests/golden/checkpoints.json"


def number(random: Random) -> str:
    """Return a number, mostly a small one, or nearly a number."""
    return str(random.randrange(-2, 12)) if random.random() < 0.8 else random.choice(NUMBERS)


def damaged(random: Random, data: bytes) -> bytes:
    """Return the bytes, often with one of them changed, added or gone."""
    if random.random() < 0.7:
        return data
    place, more = random.randrange(len(data) + 1), random.randbytes(random.randrange(3))
    return data[:place] + more + data[place + random.randrange(3) :]


def checkpoint(random: Random, fields: int) -> bytes:
    """Return what is nearly a checkpoint."""
    rows = []
    for _ in range(random.randrange(5)):
        row = [number(random) for _ in range(fields)]
        if random.random() < 0.05:
            row = row[: random.randrange(fields + 1)] + ["7"] * random.randrange(2)
        space = random.choice((" ", " ", " ", "  ", "\t", "\v", "\f", "\u00a0", "\x1c", ""))
        rows.append(space.join(row) + random.choice(("", "", "", " ", "\t ")))
    count = str(len(rows)) if random.random() < 0.8 else number(random)
    version = "0" if random.random() < 0.9 else number(random)
    ends = ("\n",) * 8 + ("\r\n", "\r", "\n\n", "")
    text = "".join(line + random.choice(ends) for line in (version, count, *rows))
    return damaged(random, text.encode())


def rising(random: Random) -> bytes:
    """Return a checkpoint of epochs that rise, now and then one that does not."""
    entries, epoch, offset = [], random.randrange(-1, 3), random.randrange(-1, 5)
    for _ in range(random.randrange(6)):
        entries.append(f"{epoch} {offset}")
        epoch += random.choice((0, -1, 1, 1, 2, 3))
        offset += random.choice((0, -1, 1, 5, 9))
    return old.write_checkpoint(entries)


def metadata(random: Random) -> bytes:
    """Return what is nearly a partition.metadata."""
    ids = ("AAECAwQFBgcICQoLDA0OAQ", "A" * 22, "AAECAwQFBgcICQoLDA0OAQ==", "A" * 21, "A/" * 11,
           "_-" * 11, "A" * 23, "")  # fmt: skip
    space = random.choice((": ", ": ", ": ", ":", ":\t ", ": : ", " "))
    lines = [f"version{space}{number(random)}", f"topic_id{space}{random.choice(ids)}", "x: y"]
    text = "\n".join(lines[: random.choice((2, 2, 2, 2, 3, 1, 0))])
    return damaged(random, text.encode())


# --- one file that is written and read -----------------------------------------------------------


def see(_: Any) -> None:
    """Say what a state holds beside its files: nothing."""


def old_checkpoint(setting: Setting, fields: int) -> Callable[[Directory], Step[Any]]:
    """Return how a checkpoint of the older model is opened."""
    if fields == 3:
        return lambda directory: old.OffsetCheckpointFile.open(
            "f", directory=directory, profile=setting.profile
        )
    return lambda directory: old.LeaderEpochCheckpointFile.open(
        "f", 0, old.EPOCH_FORMATTER, directory=directory, profile=setting.profile
    )


def broken_inside(step: Transition) -> Iterator[str]:
    """Yield the laws of checkpoints that a file of offsets breaks, which holds one."""
    if step.operation not in ("read", "write") or not hasattr(step.before, "checkpoint"):
        return
    before, after = step.before.checkpoint, step.after.checkpoint
    arguments, outcome = step.arguments, step.outcome
    if step.operation == "read":
        outcome = outcome_of(before.read)
    else:
        offsets = step.arguments["offsets"]
        rows = [
            plain.TopicPartitionOffset(topic, partition, offset)
            for (topic, partition), offset in offsets.items()
        ]
        arguments = {"entries": rows}
    yield from broken_step_laws(
        Transition(type(before), before, step.operation, arguments, after, outcome)
    )


def checkpoint_history(setting: Setting) -> None:
    """Write and read a checkpoint of offsets or epochs."""
    random = setting.chance()
    fields = random.choice((2, 3))
    kind: Any = plain.OffsetCheckpointFile if fields == 3 else plain.LeaderEpochCheckpointFile
    pair = Pair(setting, see, see)
    pair.also_broken = broken_inside
    if random.random() < 0.5:
        pair.images["f"] = checkpoint(random, fields)
    pair.open(old_checkpoint(setting, fields), kind, "f")
    for _ in range(12):
        given, others = entries(random, fields)
        draw = random.randrange(8)
        if draw < 2:
            written(pair, None if random.random() < 0.2 else checkpoint(random, fields))
        elif draw < 4:
            pair.call("write", given, others=(others,))
        else:
            pair.call("read")


def entries(random: Random, fields: int) -> tuple[Any, Any]:
    """Return what to write, for both."""

    def drawn(bits: int) -> int:
        border = 2 ** (bits - 1)
        return random.choice((0, 5, random.randrange(99), -1, border - 1, border, -border))

    if fields == 3:
        offsets = {
            (random.choice(TOPICS), drawn(32)): drawn(64) for _ in range(random.randrange(4))
        }
        return offsets, offsets
    pairs_of = [(drawn(32), drawn(64)) for _ in range(random.randrange(4))]
    return [old.EpochEntry(*one) for one in pairs_of], [plain.EpochEntry(*one) for one in pairs_of]


def written(pair: Pair, data: bytes | None) -> None:
    """Let the file hold these bytes, or be gone, behind the back of both."""
    if not hasattr(pair.old, "checkpoint"):
        pair.write("f", data)
        return
    images = {} if data is None else {"f": data}
    directory = Directory(tuple(images.items()))
    pair.old = replace(pair.old, checkpoint=replace(pair.old.checkpoint, directory=directory))

    def rewrite(draft: Any) -> None:
        draft.files.images = images

    pair.plain = apply(pair.plain, rewrite).after


def metadata_history(setting: Setting) -> None:
    """Write, read and delete a partition.metadata."""
    random = setting.chance()
    pair = Pair(setting, see, see)
    pair.open(
        lambda directory: OldMetadata.open("f", directory=directory, profile=setting.profile),
        PartitionMetadataFile,
        "f",
    )
    for _ in range(12):
        draw = random.randrange(9)
        if draw < 3:
            pair.write("f", metadata(random))
        elif draw < 4:
            pair.call("write", random.choice((bytes(16), random.randbytes(16))))
        else:
            pair.call(random.choice(("read", "read", "read", "exists", "delete")))


def kept_files(setting: Setting) -> None:
    """Read each file that was kept of the classes of a release."""
    kept = json.loads(GOLDEN.read_text(encoding="ascii"))["read"]
    for kind, data, _ in kept[setting.seed :: 100] if setting.seed < 100 else ():
        pair = Pair(setting, see, see)
        pair.images["f"] = bytes.fromhex(data)
        if kind == "meta":
            pair.open(
                lambda directory: OldMetadata.open(
                    "f", directory=directory, profile=setting.profile
                ),
                PartitionMetadataFile,
                "f",
            )
        else:
            fields = 3 if kind == "offset" else 2
            opened: Any = plain.OffsetCheckpointFile
            if fields == 2:
                opened = plain.LeaderEpochCheckpointFile
            pair.also_broken = broken_inside
            pair.open(old_checkpoint(setting, fields), opened, "f")
        pair.call("read")


# --- epochs --------------------------------------------------------------------------------------


def seen(cache: Any) -> Any:
    """Return all that a cache holds."""
    return [tuple(entry) for entry in cache.entries], cache.is_write_pending, cache.to_bytes()


class EpochHistory:
    """A random history of leader epochs."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.random = setting, setting.chance()
        self.pair = Pair(setting, seen, seen)
        if self.random.random() < 0.15:
            self.pair.old = OldEpochs.in_memory(profile=setting.profile)
            kind: Any = setting.release.kind(LeaderEpochFileCache)
            self.pair.plain = held(kind(Files(), None))
            return
        self.reopen()

    def reopen(self) -> None:
        """Load the file, often another one, which may be damaged."""
        random, setting = self.random, self.setting
        if random.random() < 0.7 and not setting.under.get("assign"):
            draws = (rising, rising, rising, lambda random: checkpoint(random, 2))
            self.pair.images["f"] = random.choice(draws)(random)
        while not self.pair.open(
            lambda directory: OldEpochs.open("f", directory=directory, profile=setting.profile),
            LeaderEpochFileCache,
            "f",
        ):
            self.pair.images["f"] = rising(random)

    def near(self, place: int) -> int:
        """Return an epoch or an offset near one that is known."""
        known = [entry[place] for entry in self.pair.old.entries] or [0]
        far = (-1, 0, 2**31 - 1, 2**31, 2**63 - 1, 2**63)
        if self.random.random() < 0.03:
            return self.random.choice(far)
        last = known[-1]
        place_of: int = self.random.choice((*known, last, last + 1, last + 5))
        return place_of + self.random.choice((0, 0, 1, -1))

    def run(self, length: int) -> None:
        """Do so many things."""
        for _ in range(length):
            self.step()

    def step(self) -> None:
        """Do one thing."""
        random, call = self.random, self.pair.call
        epoch, offset = self.near(0), self.near(1)
        draw = random.randrange(20)
        if draw < 7:
            is_refused = self.setting.under.get("assign") and not (
                0 <= epoch < 2**31 and 0 <= offset < 2**63
            )
            if not is_refused:
                call("assign", epoch, offset)
        elif draw < 9:
            call("truncate_from_end", min(offset, INT64_MAX))
        elif draw < 11:
            call("truncate_from_start", min(offset, INT64_MAX))
        elif draw < 13:
            call("run_scheduled_write")
        elif draw < 14:
            call(random.choice(("clear", "clear_and_flush", "run_scheduled_write")))
        elif draw < 15 and self.pair.old.name and not self.setting.under.get("assign"):
            self.reopen()
        for name in ("latest_entry", "earliest_entry", "latest_epoch", "previous_epoch"):
            call(name)
        call("epoch_entries")
        call("end_offset_for", random.choice((epoch, epoch, -1)), offset)
        call("epoch_for_offset", offset)
        call("previous_epoch_before", epoch)
        call("next_epoch", epoch)
        call("epoch_entries_in_range", random.choice((offset, -1)), self.near(1))


def epoch_history(setting: Setting) -> None:
    """Run a random history of epochs."""
    EpochHistory(setting).run(25)


if __name__ == "__main__":
    pairs.main((checkpoint_history, metadata_history, kept_files, epoch_history), ALONE, __doc__)
