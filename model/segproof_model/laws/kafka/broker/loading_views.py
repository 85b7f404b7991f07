# SPDX-License-Identifier: Apache-2.0
"""The loading of a log as the laws see it: the directory before, and the loaded log."""

from functools import cached_property

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX, INT64_MAX
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.broker.log_views import log_view
from segproof_model.laws.kafka.format.index_slots import OFFSET_ENTRY
from segproof_model.laws.kafka.format.record_file import scan_of
from segproof_model.laws.kafka.format.segment_views import Batch, SegmentView, batches_in
from segproof_model.laws.register import Transition, laws_of


class Directory:
    """The files of a partition, by their names without the directory's."""

    def __init__(self, files: Files, folder: str) -> None:
        self.prefix = f"{folder}/" if folder else ""
        names = [name for name in files if name.startswith(self.prefix)]
        self.files = {name.removeprefix(self.prefix): files.image(name) for name in names}

    def named(self, *suffixes: str) -> list[str]:
        """Return the names that end so."""
        return [name for name in self.files if name.endswith(suffixes)]

    def offsets(self, *suffixes: str) -> set[int]:
        """Return the offsets in these names."""
        found = [outcome_of(offset_of_name, name) for name in self.named(*suffixes)]
        return {offset for offset in found if isinstance(offset, int)}

    def image(self, base_offset: int, suffix: str) -> bytes:
        """Return the bytes of a segment's file; none if there is no file."""
        return self.files.get(segment_file_name(base_offset, suffix), b"")

    def batches(self, base_offset: int, suffix: str = ".log") -> tuple[list[Batch], bool]:
        """Return the batches of a log, and whether they are all of it."""
        data = self.image(base_offset, suffix)
        found, is_readable = batches_in(scan_of(MemoryRecords(data)))
        return found, is_readable and sum(one.size_bytes for one in found) == len(data)

    @property
    def is_plain(self) -> bool:
        """Whether there is no swap, and no log that overflows, which may be split."""
        lasts = [(base, one) for base in self.offsets(".log") for one in self.batches(base)[0][-1:]]
        is_far = any(one.last_offset - base > INT32_MAX for base, one in lasts)
        return not is_far and not self.named(".swap")


class Loading(Directory):
    """The directory before an opening, and the loaded log."""

    def __init__(self, step: Transition) -> None:
        self.given = step.arguments
        super().__init__(step.before, self.given["dir"])
        self.log = step.after
        self.left = Directory(step.after.files, self.given["dir"])
        self.segments = log_view(step.after).segments
        self.images = log_view(step.after).images
        self.start = int(self.given["log_start_offset"])
        self.recovery_point = int(self.given["recovery_point"])
        """The checkpointed ones."""
        self.is_clean = bool(self.given["last_shutdown_clean"])

    @property
    def recovered(self) -> list[SegmentView]:
        """The segments that a load after a crash recovers: from the recovery point on."""
        return [] if self.is_clean else log_view(self.log).from_floor(self.recovery_point)

    @property
    def trusts_indexes(self) -> bool:
        """Whether only swaps can have changed the log: no scan, no split, no wipe."""
        has_indexes = self.offsets(".log") <= self.offsets(".index")
        has_txns = bool(self.named(".txnindex", ".txnindex.swap"))
        return self.is_clean and has_indexes and not has_txns and self.log.size > 0

    @property
    def swaps(self) -> dict[int, int] | None:
        """Return the base offset and the end offset of each swap that is to be completed; None if
        its index is missing, or does not lead to its end, from which Kafka reads on.
        """
        unfinished, found = min(self.offsets(".cleaned"), default=INT64_MAX), {}
        for base in (base for base in self.offsets(".log.swap") if base < unfinished):
            batches, is_all = self.batches(base, ".log.swap")
            index = self.image(base, ".index.swap")
            slots = list(OFFSET_ENTRY.iter_unpack(index[: len(index) // 8 * 8]))[-1:]
            places = [one.position for one in batches]
            leads = all(at in places and base + n <= batches[-1].last_offset for n, at in slots)
            if not (is_all and leads and base in self.offsets(".index.swap")):
                return None
            found[base] = max([base, *(one.last_offset + 1 for one in batches)])
        return found

    @cached_property
    def completed(self) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """The logs that swaps give, and the others that stay; if unknown, the loaded ones."""
        if not self.trusts_indexes or self.swaps is None:
            return {}, self.images
        first, end = min(self.swaps, default=INT64_MAX), max(self.swaps.values(), default=0)
        kept = [base for base in self.offsets(".log") if not first <= base < end]
        others = {base: self.image(base, ".log") for base in kept if base not in self.swaps}
        return {base: self.image(base, ".log.swap") for base in self.swaps}, others


def loading_of(step: Transition) -> Loading | None:
    """Return the loaded log, if loading succeeded; names below offset 0 are not judged."""
    is_judged = step.succeeded and not any(name.startswith("-") for name in step.before)
    return Loading(step) if is_judged else None


loaded = laws_of(loading_of, PartitionLog, "Kafka LogLoader, since 3.0", on="open")
"""Enters a law about openings that raised nothing."""
