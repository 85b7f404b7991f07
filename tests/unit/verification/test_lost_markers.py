# SPDX-License-Identifier: Apache-2.0
"""The markers that a log lacks, as its transaction index shows, against the laws of the model."""

from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segproof.verification import verify
from segproof_harness.files.codecs import CODECS
from segproof_harness.laws.borders.log_files import aborted, batch, marker, with_byte
from segproof_harness.laws.every_law import LAWS
from segproof_tests.partition_files import in_memory, name_of

MARKED = ("DISK-11", "DISK-74")


@dataclass(frozen=True)
class Drawn:
    """A log of two producers that was written as it should be, and what was lost of it then."""

    steps: tuple[tuple[int, str], ...]
    lost: frozenset[int]
    damaged: frozenset[int]
    changed: int
    """How much the first offset of the last entry was changed."""

    def files(self) -> tuple[bytes, bytes]:
        """Return the log and the transaction index."""
        log, entries, begun, numbers = b"", list[tuple[int, int, int]](), dict[int, int](), [0, 0]
        for offset, (which, kind) in enumerate(self.steps):
            producer = 7 + which
            if kind == "plain":
                data = batch(offset)
            elif kind == "data":
                data = batch(
                    offset, producer_id=producer, producer_epoch=0,
                    base_sequence=numbers[which], is_transactional=True,
                )  # fmt: skip
                numbers[which] += 1
                begun.setdefault(producer, offset)
            else:
                data = marker(offset, kind, producer_id=producer)
                first = begun.pop(producer, None)
                if kind == "ABORT" and first is not None:
                    entries.append((first, offset, producer))
            if offset in self.damaged:
                data = with_byte(data, 20, data[20] ^ 1)
            log += b"" if offset in self.lost else data
        if entries:
            first, last, producer = entries[-1]
            entries[-1] = min(max(0, first + self.changed), last), last, producer
        index = b"".join(aborted(first, last, producer_id=one) for first, last, one in entries)
        return log, index


steps = st.tuples(st.integers(0, 1), st.sampled_from(("data", "data", "ABORT", "COMMIT", "plain")))
logs = st.builds(
    Drawn,
    st.lists(steps, min_size=2, max_size=12).map(tuple),
    st.frozensets(st.integers(0, 12), max_size=3),
    st.frozensets(st.integers(0, 12), max_size=2),
    st.sampled_from((0, 0, 0, 1, -1, 2)),
)
TWO = ((0, "data"), (0, "COMMIT"), (0, "data"), (0, "ABORT"))
ONE = ((0, "data"), (0, "ABORT"), (1, "data"))


@pytest.mark.checks(*MARKED)
@given(logs)
@example(Drawn(TWO, frozenset({1}), frozenset(), 0))
@example(Drawn(TWO, frozenset({1, 2}), frozenset(), 0))
@example(Drawn(TWO, frozenset(), frozenset({1}), 0))
@example(Drawn(ONE, frozenset({1}), frozenset(), 0))
@example(Drawn(ONE, frozenset(), frozenset({1}), 0))
@example(Drawn(TWO, frozenset(), frozenset(), 1))
def test_verify_tells_what_the_laws_say(drawn: Drawn) -> None:
    """An entry is accused, or the log lacks a marker: as the model says it of each drawn file.

    An entry that ends in a damaged batch is in doubt, so of it verify accuses nothing.
    """
    log, index = drawn.files()
    files = in_memory({name_of(0, ".log"): log, name_of(0, ".txnindex"): index}, "/data/t-0")
    found = {one.law for one in verify("/data/t-0", laws=MARKED, files=files)}
    broken = {
        law
        for law in MARKED
        if not LAWS[law].predicate(
            log=log, transaction_index=index, base_offset=0, next_base_offset=None, codecs=CODECS
        )
    }
    if not drawn.damaged:
        assert broken == found
    assert found <= broken
    assert "DISK-74" in found or "DISK-74" not in broken
