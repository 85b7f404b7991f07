# SPDX-License-Identifier: Apache-2.0
"""The bytes of one log from the first to the last, with what becomes of each batch.

Laws: BATCH-2, BATCH-3.
"""

from collections.abc import Iterator

from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import Facts, LogFacts
from segproof.stretches.kafka.in_place import rows_of_log
from segproof.stretches.kafka.placing import Placement
from segproof.stretches.spans import Span, SpanKind, in_runs

_KINDS = {
    Fate.KEPT: SpanKind.SOUND,
    Fate.RESTORED: SpanKind.RESTORED,
    Fate.MOVED: SpanKind.MOVED,
    Fate.ASIDE: SpanKind.ASIDE,
}


def spans_of(facts: Facts, placement: Placement, number: int = 0) -> Iterator[Span]:
    """Yield the spans of a log, `Facts.logs[number]`; they touch, and leave no byte out."""
    log, at = facts.logs[number], 0
    for span in in_runs(_of_batches(facts, placement, number)):
        yield from without_batches(log, at, span.start)
        yield span
        at = span.end
    yield from without_batches(log, at, log.size)


def _of_batches(facts: Facts, placement: Placement, number: int) -> Iterator[Span]:
    """Yield a span for each row of a log but those inside a torn batch."""
    rows = facts.rows
    for row in rows_of_log(facts, number):
        own, fate = rows[row], Fate(placement.fates[row])
        if fate is Fate.INSIDE:
            continue
        kind, first = _KINDS[fate], int(placement.firsts[row])
        if own["is_mended"] and fate in (Fate.KEPT, Fate.RESTORED):
            kind = SpanKind.MENDED
        yield Span(
            kind, int(own["start"]), int(own["end"]), int(own["batches"]), int(own["records"]),
            first, first + int(own["last"] - own["first"]), int(own["min_time"]),
            int(own["max_time"]), placement.why(row).rule_id,
        )  # fmt: skip


def without_batches(log: LogFacts, start: int, end: int) -> Iterator[Span]:
    """Yield the spans of the bytes [start, end), in which there is no batch."""
    zeros = log.zeros_from
    torn = zeros if log.torn_from is None else log.torn_from
    unsearched = torn if log.unsearched_from is None else min(log.unsearched_from, torn)
    for kind, begin, border in (
        (SpanKind.BROKEN, 0, unsearched),
        (SpanKind.UNSEARCHED, unsearched, torn),
        (SpanKind.TORN, torn, zeros),
        (SpanKind.ZEROS, zeros, log.size),
    ):
        first, last = max(start, begin), min(end, border)
        if first < last:
            yield Span(kind, first, last)
