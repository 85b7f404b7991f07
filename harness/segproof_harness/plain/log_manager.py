# SPDX-License-Identifier: Apache-2.0
"""Hold the plain log manager against the older one: random histories of log directories.

python -m segproof_harness.plain.log_manager [--seeds 50] [--first 0] [--length 40]
    [--release NAME ...] [--show 1]
"""

import argparse
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from segproof_harness.codecs import CODECS
from segproof_harness.outcomes import of_model
from segproof_model.directory import Directory
from segproof_model.kafka.broker.log_manager import LogManager
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.log_config import LogConfig as OldLogConfig
from segproof_model.kafka.log_manager import LogManager as OldLogManager
from segproof_model.kafka.record_batch import Record, write_batch
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised, Step
from segproof_model.language.states import apply, opened
from segproof_model.profiles import Profile, profile_named
from segproof_model.releases import RELEASES
from segproof_model.values import replace

OPTIONS: dict[str, Any] = {
    "segment_bytes": 300,
    "segment_index_bytes": 96,
    "index_interval_bytes": 50,
    "retention_bytes": 700,
    "file_delete_delay_ms": 1000,
}
FILES = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    ".kafka_cleanshutdown",
    "t-0/partition.metadata",
    "t-1/leader-epoch-checkpoint",
    "strange/x",
    "t-99999999999/x",
    "t-0.8f1c-delete/x",
    "remote-log-index-cache/x",
    "__cluster_metadata-0/x",
)
PARTITIONS = (("t", 0), ("t", 1), ("a-b", 10))
BOUNDS = [
    "log_start_offset",
    "log_end_offset",
    "recovery_point",
    "high_watermark",
    "last_stable_offset",
]
Change = Callable[[Any], Any]


class Difference(Exception):  # noqa: N818 - what a history ends with
    """Where the two models part."""


class Managers:
    """A log directory in both models."""

    def __init__(self, release: Release, profile: Profile, seed: int) -> None:
        self.release, self.profile, self.random = release, profile, random.Random(seed)
        self.log_dir = self.random.choice(("", "d"))
        self.directory, self.files, self.now_ms = Directory(), Files({}, 1_000_000), 1_000_000
        self.count: Counter[str] = Counter()
        self.open()

    def open(self) -> None:
        """Begin with the files as they are."""
        self.old = OldLogManager.open(
            self.log_dir,
            OldLogConfig(**OPTIONS),
            directory=self.directory,
            profile=self.profile,
            codecs=CODECS,
            now_ms=self.now_ms,
        ).after
        kind: Any = self.release.kind(LogManager)
        files = Files(self.files.images, self.now_ms)
        step = opened(kind, files, self.log_dir, LogConfig(**OPTIONS), codecs=CODECS)
        self.new: Any = step.after
        self.compare("open", Step(self.old), step)
        self.do("load_logs", lambda one: one.load_logs(), lambda one: one.load_logs())

    def do(self, name: str, old: Change, new: Change) -> None:
        """Let both do something, and compare."""
        step = old(self.old)
        made = apply(self.new, new)
        self.old, self.new = step.after, made.after
        self.compare(name, step, made)

    def on_log(self, name: str, key: tuple[str, int], *arguments: Any) -> None:
        """Let the log of a partition do something on both, if there is one."""
        log = self.old.log_of(*key)
        if log is None:
            return
        step: Any = getattr(log, name)(*arguments)
        self.old = self.old.with_log(*key, step.after)
        made = apply(self.new, lambda one: getattr(one.log_of(*key), name)(*arguments) and None)
        self.new = made.after
        failed = isinstance(step.outcome, Raised)
        self.compare(name, Step(self.old, step.outcome if failed else None), made)

    def compare(self, name: str, old: Step[Any], new: Step[Any]) -> None:
        """Compare errors, files and what each manager knows."""
        self.directory, self.files = self.old.directory, self.new.files
        error = of_model(old.outcome).error if isinstance(old.outcome, Raised) else None
        self.count[f"{name} {error or ''}".strip()] += 1
        pairs: tuple[tuple[str, Any, Any], ...] = (
            ("error", error, of_model(new.outcome).error),
            ("files", dict(self.directory.files), dict(self.files.images)),
            ("logs", [key for key, _ in self.old.logs], list(self.new.partitions)),
            ("bounds", [bounds(log) for _, log in self.old.logs], list(map(bounds, self.new.logs))),
            ("flags", flags(self.old), flags(self.new)),
        )
        for what, one, other in pairs:
            if isinstance(one, dict) and isinstance(other, dict):
                names = [n for n in {**one, **other} if one.get(n) != other.get(n)]
                one, other = ({n: of.get(n) for n in names} for of in (one, other))
            if one != other:
                raise Difference(f"{name}: {what}\n    {one}\n    {other}")

    def damage(self) -> None:
        """Let a file be another one while nothing is open."""
        prefix = f"{self.log_dir}/" if self.log_dir else ""
        name = prefix + self.random.choice(FILES)
        data = self.random.choice((None, b"", b"0\n1\nt 0 3\n", b"0\n2\nt 0 3\n", b"version: 1"))
        if data is None:
            self.directory = self.directory.remove(name)
        else:
            self.directory = self.directory.write(name, data)
        self.files = Files(dict(self.directory.files), self.now_ms)

    def step(self) -> None:
        """Do something at random."""
        chance, key = self.random.randrange(100), self.random.choice(PARTITIONS)
        log = self.old.log_of(*key)
        end = 0 if log is None else log.log_end_offset
        if chance < 20:
            topic_id = self.random.choice((None, None, bytes(15) + b"a", bytes(15) + b"b"))
            self.do(
                "get_or_create_log",
                lambda one: one.get_or_create_log(*key, topic_id),
                lambda one: one.get_or_create_log(*key, topic_id) and None,
            )
        elif chance < 60:
            magic = 2 if self.profile.magic_2_is_written else 1
            records = [Record(0, self.now_ms - 5, None, b"v" * 40)]
            batch = write_batch(records, base_offset=0, magic=magic)
            self.on_log("append_as_leader", key, batch, self.random.randrange(3))
        elif chance < 72:
            names = ["update_high_watermark", "maybe_increment_log_start_offset"]
            known = names if self.profile.log_start_is_kept else names[:1]
            self.on_log(self.random.choice(known), key, self.random.randint(0, end))
        elif chance < 84:
            self.on_log(self.random.choice(("roll", "flush", "delete_old_segments")), key)
        elif chance < 88:
            self.tick(self.random.choice((1, 500, 2000)))
        elif chance < 92:
            name = self.random.choice(
                ("checkpoint_log_recovery_offsets", "checkpoint_log_start_offsets")
            )
            self.do(name, lambda one: getattr(one, name)(), lambda one: getattr(one, name)())
        else:
            self.stop()

    def tick(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms
        self.old = self.old.at(self.now_ms)
        self.new = apply(self.new, lambda one: setattr(one.files, "now_ms", self.now_ms)).after

    def stop(self) -> None:
        """Stop or crash, perhaps damage a file, and start again."""
        if self.random.random() < 0.6:
            self.do("shutdown", lambda one: one.shutdown(), lambda one: one.shutdown())
        if self.random.random() < 0.4:
            self.damage()
        self.old = replace(self.old, logs=())
        self.open()


def bounds(log: Any) -> list[int]:
    """Return the offsets that bound a log."""
    return [getattr(log, name) for name in BOUNDS]


def flags(manager: Any) -> list[bool]:
    """Return what a manager remembers of its start."""
    return [manager.is_loaded, manager.had_clean_shutdown]


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--release", nargs="*", default=None)
    parser.add_argument("--show", type=int, default=1)
    given = parser.parse_args()
    bad = 0
    known = [name for name in RELEASES if not name.startswith("rocketmq")]
    for name in given.release or known:
        count: Counter[str] = Counter()
        found = []
        for seed in range(given.first, given.first + given.seeds):
            managers = None
            try:
                managers = Managers(RELEASES[name], profile_named(name), seed)
                for _ in range(given.length):
                    managers.step()
            except Difference as difference:
                found.append(f"seed {seed}: {difference}")
            except Exception:
                found.append(f"seed {seed}: {traceback.format_exc()[-2500:]}")
            count += Counter() if managers is None else managers.count
        print(f"{name}: {sum(count.values())} operations, {len(found)} differences")
        for line in found[: given.show]:
            print(f"  {line:.3000}")
        if given.show > 1:
            print(f"  {dict(count)}")
        bad += len(found)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
