# SPDX-License-Identifier: Apache-2.0
"""What a damage in a log costs: what a recovery keeps, what it deletes though it is sound, what is
lost for good.

Upstream: Kafka 4.3.1: LogSegment.recover cuts a log at its first batch that is not valid,
    and LogLoader.recoverLog removes all later segments.
Laws: SEG-20.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

from segproof.counts import lost_words, plural, verb
from segproof.findings import time_text
from segproof.reading.pieces import Piece, PieceKind

DAMAGE_BEGINS = "; this damage begins with the batch at byte "
"""How the words of a finding end whose damage an earlier finding of the log tells: the byte follows
that the earlier one names."""


class LogDamage(NamedTuple):
    """A log from its first damage on."""

    position: int
    """Where a recovery would cut the log."""
    sound: Piece | None = None
    """The first to the last sound batch behind it, as one piece; None without any."""
    odd_batches: int = 0
    """Batches with a right checksum whose offsets do not fit, or that no broker loads."""
    broken_places: int = 0
    broken_bytes: int = 0
    lost_offsets: int = 0
    """Offsets in no sound batch, between the sound batches around broken bytes, that are lost."""
    unsearched_from: int | None = None
    """Where the search for sound batches gave up; None if it did not."""
    last_sound_offset: int = -1
    """The last offset of the last sound batch, behind the damage or before it."""
    ends_broken: bool = False
    """Whether damage follows that batch."""
    broken_from: int | None = None
    """Where the damage begins that follows it."""
    is_end_claimed: bool = False
    """Whether headers there claim each offset up to the next segment."""
    unproven_offsets: int = 0
    """The others between them: the damage took them, or compaction before it."""
    restorable_batches: int = 0
    """Batches whose size or magic is wrong, and whose checksum proves them."""

    @classmethod
    def from_json(cls, told: list[Any]) -> Self:
        """Return what JSON made lists of."""
        position, sound, *others = told
        return cls(
            position, None if sound is None else Piece(PieceKind(sound[0]), *sound[1:]), *others
        )

    @property
    def is_tail(self) -> bool:
        """Whether nothing sound follows, for certain."""
        is_alone = self.sound is None and not self.odd_batches and not self.restorable_batches
        return is_alone and self.unsearched_from is None

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
        if self.restorable_batches:
            told.append(
                f"{plural(self.restorable_batches, 'batch')} with a wrong size or magic can be"
                " saved, as the checksum proves"
            )
        if self.odd_batches:
            fit = verb(self.odd_batches, "fits", "fit")
            told.append(
                f"{plural(self.odd_batches, 'batch')} with a right checksum {fit} nowhere{cost}"
            )
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
                f" lost, with {self._lost_words()}"
            )
        if are_more_deleted and self.is_tail:
            told.append("a recovery would delete all later segments")
        return "".join(f"; {one}" for one in told)

    def _lost_words(self) -> str:
        """Return how many offsets are lost: behind the last sound batch nothing counts them."""
        known = None if self.ends_broken else self.lost_offsets
        if not self.unproven_offsets:
            return lost_words(known, self.lost_offsets, "offset")
        if self.ends_broken:
            return lost_words(None, self.lost_offsets, "offset")
        return lost_words(None, self.lost_offsets, "offset", self.unproven_offsets)


def summed_up(
    pieces: Iterable[Piece],
    start: int,
    reached: int,
    is_lost: Callable[[int, int, int, int], bool] = lambda *_: True,
) -> LogDamage:
    """Return what pieces from a damage on say together.

    `is_lost` gets the bytes of broken pieces, from and to, and the offsets that are missing there,
    the first and the one after the last; it returns whether these are lost for certain.
    """
    damage = LogDamage(start)
    broken_from: int | None = None
    for piece in pieces:
        if piece.kind in (PieceKind.SOUND, PieceKind.RESTORABLE):
            missing = piece.first_offset - reached - 1
            if broken_from is not None and missing:
                at = broken_from, piece.start, reached + 1, piece.first_offset
                if missing < 0 or is_lost(*at):
                    damage = damage._replace(lost_offsets=damage.lost_offsets + missing)
                else:
                    unproven = damage.unproven_offsets + missing
                    damage = damage._replace(unproven_offsets=unproven)
            reached, broken_from = piece.last_offset, None
            if piece.kind is PieceKind.RESTORABLE:
                damage = damage._replace(restorable_batches=damage.restorable_batches + 1)
            else:
                sound = piece if damage.sound is None else damage.sound.joined(piece)
                damage = damage._replace(sound=sound)
            continue
        if piece.kind in (PieceKind.MISPLACED, PieceKind.UNLOADABLE):
            damage = damage._replace(odd_batches=damage.odd_batches + piece.batches)
        elif piece.kind is PieceKind.UNSEARCHED:
            damage = damage._replace(unsearched_from=piece.start)
            continue
        elif piece.kind is PieceKind.BROKEN:
            damage = damage._replace(
                broken_places=damage.broken_places + 1,
                broken_bytes=damage.broken_bytes + piece.size_bytes,
            )
        else:
            continue
        broken_from = piece.start if broken_from is None else broken_from
    return damage._replace(
        last_sound_offset=reached, ends_broken=broken_from is not None, broken_from=broken_from
    )


def _times(piece: Piece) -> str:
    if piece.max_timestamp < 0:
        return ""
    return f" of {time_text(piece.min_timestamp)} to {time_text(piece.max_timestamp)}"
