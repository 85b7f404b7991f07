# SPDX-License-Identifier: Apache-2.0
"""The bytes of one log from the first to the last, with what becomes of each batch.

Laws: BATCH-2, BATCH-3.
"""

from collections.abc import Iterator

from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import Facts, LogFacts
from segproof.stretches.kafka.placing import Placement
from segproof.stretches.kafka.rules import RULES
from segproof.stretches.spans import Span, SpanKind, in_runs

_KINDS = {
    Fate.KEPT: SpanKind.SOUND,
    Fate.RESTORED: SpanKind.RESTORED,
    Fate.MOVED: SpanKind.MOVED,
    Fate.ASIDE: SpanKind.ASIDE,
}


def spans_of(facts: Facts, placement: Placement) -> Iterator[Span]:
    """Yield the spans of a log that was placed alone; they touch, and leave no byte out."""
    (log,), at = facts.logs, 0
    for span in in_runs(_of_batches(facts, placement)):
        yield from without_batches(log, at, span.start)
        yield span
        at = span.end
    yield from without_batches(log, at, log.size)


def _of_batches(facts: Facts, placement: Placement) -> Iterator[Span]:
    """Yield a span for each row but those inside a torn batch."""
    rows, firsts = facts.rows, placement.firsts
    columns = (
        placement.fates, placement.rules, rows["is_mended"], rows["start"],
        rows["end"], rows["batches"], rows["records"], firsts,
        firsts + rows["last"] - rows["first"], rows["min_time"], rows["max_time"],
    )  # fmt: skip
    for fate, rule, is_mended, start, end, batches, records, *told in zip(
        *(one.tolist() for one in columns), strict=True
    ):
        if fate == Fate.INSIDE:
            continue
        kind = _KINDS[fate]
        if is_mended and kind in (SpanKind.SOUND, SpanKind.RESTORED):
            kind = SpanKind.MENDED
        first, last, earliest, latest = told
        yield Span(
            kind, start, end, batches, records, first, last, earliest, latest, RULES[rule].rule_id
        )


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
