# SPDX-License-Identifier: Apache-2.0
"""How plain batches are read and shown beside those of the older model."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from segproof_harness import codecs as old
from segproof_harness.descriptions.batches import (
    FIELDS,
    RECORDS_SHOWN_MAX,
    show_fields,
    show_record,
    show_records_of_model,
)
from segproof_harness.outcomes import normalise
from segproof_model.kafka import compression as old_compression
from segproof_model.kafka.format.compression import BeyondLimitError, Codecs, CutShortError
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import Refused, outcome_of


def _inflate(codec: int, data: bytes, limit_bytes: int) -> bytes:
    """Inflate, with the errors of the plain model."""
    try:
        return old.CODECS.inflate(codec, data, limit_bytes)
    except old_compression.CutShortError as error:
        raise CutShortError(str(error), error.inflated) from error
    except old_compression.BeyondLimitError as error:
        raise BeyondLimitError(limit_bytes) from error


CODECS = Codecs(_inflate, old.CODECS.deflate, old.CODECS.xxhash32, old.CODECS.limit_bytes)
"""The harness's codecs for the plain model."""


def until_refused(items: Iterable[Any], show: Callable[[Any], Any] = normalise) -> Any:
    """Return what is handed out, shown, and the kind of error that ends it."""
    shown: list[Any] = []
    try:
        shown.extend(map(show, islice(items, RECORDS_SHOWN_MAX)))
    except Refused as error:
        return tuple(shown), str(error.kind)
    return tuple(shown), None


def records_of(batch: Any) -> Any:
    """Return the first records, and the kind of error that ends them."""
    return until_refused(batch.records(), show_record)


def field_of(batch: Any, name: str) -> Any:
    """Return a field of a plain batch, or its kind of error."""
    found = outcome_of(lambda: getattr(batch, name))
    return ("error", str(found.kind)) if isinstance(found, Raised) else found


def times_of_old(batch: Any) -> Any:
    """Return the times that the older model reads, as a whole or streamed."""
    return tuple(
        (normalise(found.times), None if found.error is None else str(found.error.kind))
        for found in (batch.times_until_error(), batch.times_until_error(is_streamed=True))
    )


def is_short(batch: Any) -> bool:
    """Return whether a batch does not claim more records than are compared."""
    count = outcome_of(lambda: batch.record_count)
    return not isinstance(count, int) or count < RECORDS_SHOWN_MAX


TAILS = (0, 20, 61)
"""What can be read of a batch in a file is tried with so many bytes less, and with more."""


def read_of(batch: Any) -> Any:
    """Return all that can be read of a plain batch, here and in a file."""
    kept = [batch.data[: max(17, len(batch.data) - tail)] for tail in TAILS]
    codecs, size = batch.codecs, batch.size_bytes
    in_file = [type(batch)(one, 0, size, True, codecs) for one in (*kept, batch.data + bytes(61))]
    return [
        (
            tuple(field_of(one, name) for name in FIELDS),
            until_refused(ask() for ask in (one.is_valid, one.ensure_valid)),
            records_of(one),
            is_short(one) and (until_refused(one.times()), until_refused(one.streamed_times())),
        )
        for one in (batch, *in_file)
    ]


def read_of_old(batch: Any) -> Any:
    """Return the same of one of the older model."""
    kept = [batch.data[: max(17, len(batch.data) - tail)] for tail in TAILS]
    in_file = [
        RecordBatch(one, 0, batch.size_bytes, True, codecs=batch.codecs, profile=batch.profile)
        for one in (*kept, batch.data + bytes(61))
    ]
    found = []
    for one in (batch, *in_file):
        answers: list[Any] = [one.is_valid(), one.ensure_valid()]
        kinds = [str(answer.kind) for answer in answers if isinstance(answer, Raised)]
        good = tuple(answer for answer in answers if not isinstance(answer, Raised))
        found.append(
            (
                show_fields(one),
                (good, kinds[0] if kinds else None),
                show_records_of_model(one),
                is_short(one) and times_of_old(one),
            )
        )
    return found
