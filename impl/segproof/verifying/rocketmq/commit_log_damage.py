# SPDX-License-Identifier: Apache-2.0
"""What a damage in a commit log costs: which sound messages lie behind it, and what is lost.

A recovery reads the log from one of its last files on, and ends at the first place where it reads
no message. It cuts the log there, and removes all later files. A blank end leads it to the next
file, also where sound messages lie behind it. What lies before the file that it begins with stays
as it is, and queues lead to it.

Upstream: RocketMQ 4.7.0 to 5.5.1: CommitLog.recoverNormally and recoverAbnormally,
MappedFileQueue.truncateDirtyFiles.
Laws: RMQDISK-24, RMQDISK-26, RMQDISK-27.
"""

from contextlib import suppress

from segproof.counts import QUEUES_TELL, lost_words, plural, verb
from segproof.files import Files, first_byte_of
from segproof.reading.commit_log_damage import LOST_FILES_MAX, Damage, DamageMap
from segproof.reading.file_parts import rest_of
from segproof.reading.log_gaps import Gap, GapKind
from segproof.reading.queue_units import LostMessages, lost_together, messages_in
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.consume_queue import max_physic_offset
from segproof.rocketmq.message_store import first_recovered_file
from segproof.rocketmq.store_checkpoint import StoredCheckpoint


class Recovery:
    """What the words about a damage say of the next start, asked when they are needed."""

    def __init__(
        self,
        store: str,
        log: CommitLog,
        files: Files,
        checkpoint: StoredCheckpoint | None = None,
        is_clean: bool = True,
    ) -> None:
        self._store = store
        self._log = log
        self._files = files
        self._checkpoint = checkpoint
        """None: nothing is said of where a recovery begins."""
        self._is_clean = is_clean

    def words(self, damage: Damage, one: LogFile, kept: int, *, is_passed: bool = False) -> str:
        """Return what lies behind a damage, to follow the words of a finding; empty for a tail
        that costs no known message.

        `kept` is how many messages lie before it. `is_passed` says that a recovery goes on behind
        the damage, with the next file: it is a blank end.
        """
        sound, told = damage.sound, damage.words()
        gaps, count = damage.gaps, self.lost_messages(damage)
        if not told and (count is None or not count.known):
            return ""
        lost = f"{gaps.size_bytes} bytes in {plural(gaps.places, 'place')} are lost"
        if count is not None:
            known = count.known if count.is_exact else None
            lost += f", with {lost_words(known, count.known, 'message')}, {QUEUES_TELL}"
        told.append(lost)
        if is_passed:
            told.append(
                "a recovery that reaches this place goes on with the next file: no new queue and no"
                f" new index gets the messages that lie behind it in this file{self._start(one)}"
            )
            return "".join(f"; {each}" for each in told)
        thrown = f"these {sound.messages}" if sound.messages else "what follows"
        told.append(
            f"a recovery that reaches this place keeps the {plural(kept, 'message')} before it,"
            f" cuts the log here and throws {thrown} away{self._start(one)}"
        )
        return "".join(f"; {each}" for each in told)

    def lost_messages(self, damage: Damage) -> LostMessages | None:
        """Return how many messages are lost in the gaps; None where no queue tells."""
        if not damage.gaps.is_complete:
            return None
        try:
            gaps = sorted([*damage.gaps.kept, *damage.tail], key=lambda gap: gap.start)
            counts = messages_in(
                self._store,
                gaps,
                self._files,
                damage.sound_end,
                damage.sound_messages,
                are_some_ours=damage.is_known,
            )
            if counts is None:
                return None
            kept = {*damage.gaps.kept}
            return lost_together(
                [one for gap, one in zip(gaps, counts, strict=True) if gap in kept or one.known]
            )
        except OSError:
            return None

    def known_beyond(self, found: DamageMap, end: int) -> int:
        """Return how many messages index and queues know from an offset after the log on."""
        log = self._log
        far = log.max_offset + LOST_FILES_MAX * log.mapped_file_size
        beyond = Gap(GapKind.MISSING, log.log_files[-1].path, end, far)
        with suppress(OSError):
            counts = messages_in(
                self._store,
                [beyond],
                self._files,
                0,
                found.in_order.sound_messages,
                are_some_ours=found.in_order.units_met()[0] > 0,
            )
            return counts[0].known if counts else 0
        return 0

    def _start(self, one: LogFile) -> str:
        """Return whether the next start of 5.5.1 reads a file."""
        if self._checkpoint is None:
            return ""
        try:
            reached = max_physic_offset(self._store, self._files) if self._is_clean else -1
            first = first_recovered_file(self._log, self._checkpoint, self._is_clean, reached)
        except OSError:
            return ""
        if first is None:
            return ""
        begins = f" (the next start of 5.5.1 recovers from offset {first.start} on, "
        if first.start <= one.start:
            return f"{begins}so it reaches this place)"
        return f"{begins}after this place: it does not read it, and cuts nothing here)"


def rest_words(one: LogFile, size: int, length: int, files: Files) -> str:
    """Return in words what lies after the length of a file, where no check reads."""
    if length <= size or first_byte_of(files, one.path, size, length) is None:
        return ""
    try:
        rest = rest_of(one.path, size, length, files)
    except OSError:  # the reader of the records reports it
        return ""
    words = f"; the {length - size} bytes from byte {size} on were not checked"
    if not rest.messages:
        return f"{words}: no sound message was found in them"
    have = plural(rest.messages, "sound message")
    return (
        f"{words}: they contain {have} of {rest.size_bytes} bytes, which"
        f" {verb(rest.messages, 'says', 'say')} offsets {rest.first_offset} to {rest.last_offset};"
        " two files were joined, perhaps"
    )
