# SPDX-License-Identifier: Apache-2.0
"""What a damage in a log costs: what a recovery keeps, what it deletes though it is sound, what is
lost for good.

Upstream: Kafka 4.3.1: LogSegment.recover cuts a log at its first batch that is not valid,
    and LogLoader.recoverLog removes all later segments.
Laws: SEG-20.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from segproof.counts import lost_words, plural, verb
from segproof.findings import time_text
from segproof.reading.log_placement import IsLost, LogPlacement
from segproof.stretches.spans import Span, SpanKind

DAMAGE_BEGINS = "; this damage begins with the batch at byte "
"""How the words of a finding end whose damage an earlier finding of the log tells: the byte follows
that the earlier one names."""
_COUNTED = {
    SpanKind.MENDED: "mended_batches",
    SpanKind.RESTORED: "restored_batches",
    SpanKind.MOVED: "moved_batches",
    SpanKind.ASIDE: "odd_batches",
}
_LOST = (SpanKind.BROKEN, SpanKind.TORN)


class LogDamage(NamedTuple):
    """A log from its first damage on."""

    position: int
    """Where a recovery would cut the log."""
    sound: Span | None = None
    """The first to the last sound batch behind it, as one span; None without any."""
    mended_batches: int = 0
    """Batches whose size or magic is wrong, and whose checksum proves them."""
    restored_batches: int = 0
    """Batches whose base offset is wrong, and whose place states the right one."""
    moved_batches: int = 0
    """Batches that are sound, and belong to another place of the log."""
    odd_batches: int = 0
    """Batches with a right checksum whose offsets do not fit, or that no broker loads."""
    broken_places: int = 0
    broken_bytes: int = 0
    lost_offsets: int = 0
    """Offsets in no batch that is kept, between such batches around broken bytes, that are lost."""
    unsearched_from: int | None = None
    """Where the search for sound batches gave up; None if it did not."""
    last_sound_offset: int = -1
    """The last offset of all batches that are kept, behind the damage or before it."""
    broken_from: int | None = None
    """Where the damage begins that follows the last of these batches that stays where it lies; None
    if none does."""
    is_end_claimed: bool = False
    """Whether headers there claim each offset up to the next segment."""
    unproven_offsets: int = 0
    """The others between them: the damage took them, or compaction before it."""

    @classmethod
    def from_json(cls, told: list[Any]) -> Self:
        """Return what JSON made lists of."""
        position, sound, *others = told
        return cls(
            position, None if sound is None else Span(SpanKind(sound[0]), *sound[1:]), *others
        )

    @property
    def ends_broken(self) -> bool:
        """Whether damage follows the last batch that is kept."""
        return self.broken_from is not None

    @property
    def is_tail(self) -> bool:
        """Whether no batch follows, for certain."""
        batches = sum(getattr(self, name) for name in _COUNTED.values())
        return self.sound is None and not batches and self.unsearched_from is None

    def words(self, *, is_recovered: bool = True, is_last: bool = True) -> str:
        """Return it in words that follow the words of a finding; empty for a tail of the last log.

        `is_recovered`: a broker may recover the log, which it never does in tiered storage. A
        recovery that cuts a log which is not the last one removes all later segments.
        """
        told, cost = [], ": a recovery would delete them" if is_recovered else ""
        are_more_deleted = is_recovered and not is_last
        if are_more_deleted:
            cost += " and all later segments"
        if self.sound is not None:
            follow = plural(self.sound.batches, "sound batch", "follows", "follow")
            told.append(
                f"{follow}, from byte {self.sound.start}"
                f" and offset {self.sound.first_offset} on to offset {self.sound.last_offset}, with"
                f" {plural(self.sound.records, 'record')}{_times(self.sound)}{cost}"
            )
        told += self._batch_words(cost)
        if self.unsearched_from is not None:
            told.append(
                f"whether sound batches follow{', which a recovery would delete,' * is_recovered}"
                f" is not known: the search ended at byte {self.unsearched_from}"
            )
        elif told and not (self.broken_places or self.lost_offsets or self.unproven_offsets):
            told.append("no offset is lost")
        elif told:
            told.append(
                f"{plural(self.broken_bytes, 'byte')} in {plural(self.broken_places, 'place')} are"
                f" lost, with {self.lost_words()}"
            )
        if are_more_deleted and self.is_tail:
            told.append("a recovery would delete all later segments")
        return "".join(f"; {one}" for one in told)

    def _batch_words(self, cost: str) -> list[str]:
        """Return what becomes of batches that are not simply sound."""
        told = []
        for batches, what in (
            (self.mended_batches, "size or magic can be saved, as the checksum proves"),
            (self.restored_batches, "base offset can be saved, as its place states the right one"),
        ):
            if batches:
                told.append(f"{plural(batches, 'batch')} with a wrong {what}")
        if self.moved_batches:
            lie = verb(self.moved_batches, "lies", "lie")
            told.append(
                f"{plural(self.moved_batches, 'sound batch')} {lie} in a wrong place of the log,"
                f" and can be saved{cost}"
            )
        if self.odd_batches:
            fit = verb(self.odd_batches, "fits", "fit")
            told.append(
                f"{plural(self.odd_batches, 'batch')} with a right checksum {fit} nowhere{cost}"
            )
        return told

    def lost_words(self) -> str:
        """Return how many offsets are lost: nothing counts those behind the last batch kept."""
        known = None if self.ends_broken else self.lost_offsets
        if not self.unproven_offsets:
            return lost_words(known, self.lost_offsets, "offset")
        if self.ends_broken:
            return lost_words(None, self.lost_offsets, "offset")
        return lost_words(None, self.lost_offsets, "offset", self.unproven_offsets)


def damage_of(spans: Iterable[Span], start: int) -> LogDamage:
    """Return what the spans of a log from byte `start` on come to together, but for offsets."""
    damage = LogDamage(start)
    broken_to = start - 1
    for span in spans:
        if span.end <= start:
            continue
        if span.kind in _LOST:
            damage = damage._replace(
                broken_places=damage.broken_places + (span.start != broken_to),
                broken_bytes=damage.broken_bytes + span.end - max(span.start, start),
            )
            broken_to = span.end
        elif span.kind is SpanKind.UNSEARCHED and damage.unsearched_from is None:
            damage = damage._replace(unsearched_from=span.start)
        elif span.kind is SpanKind.SOUND:
            sound = span if damage.sound is None else damage.sound.joined(span)
            damage = damage._replace(sound=sound)
        elif span.kind in _COUNTED:
            name = _COUNTED[span.kind]
            damage = damage._replace(**{name: getattr(damage, name) + span.batches})
        if span.kind in (*_LOST, SpanKind.ASIDE):
            broken_from = max(span.start, start)
            if damage.broken_from is None:
                damage = damage._replace(broken_from=broken_from)
        elif span.batches and span.kind is not SpanKind.MOVED:
            damage = damage._replace(broken_from=None)
    return damage


def damage_of_log(placed: LogPlacement, start: int, is_lost: IsLost) -> LogDamage:
    """Return what a damage costs that begins at byte `start` of a log."""
    lost, unproven = placed.lost_from(start, is_lost)
    return damage_of(placed.spans(), start)._replace(
        lost_offsets=lost, unproven_offsets=unproven, last_sound_offset=placed.last_offset
    )


def _times(span: Span) -> str:
    if span.max_timestamp < 0:
        return ""
    return f" of {time_text(span.min_timestamp)} to {time_text(span.max_timestamp)}"
