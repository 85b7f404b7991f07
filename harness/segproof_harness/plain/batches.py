# SPDX-License-Identifier: Apache-2.0
"""How plain batches are read and shown beside those of the older model."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from segproof_harness import codecs as old
from segproof_harness.descriptions.batches import (
    RECORDS_SHOWN_MAX,
    show_record,
)
from segproof_harness.outcomes import normalise
from segproof_model.kafka import compression as old_compression
from segproof_model.kafka.format.compression import BeyondLimitError, Codecs, CutShortError
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


def old_times(batch: Any) -> Any:
    """Return what the older model reads of times, streamed or not."""
    return tuple(
        (
            normalise(found.times[:RECORDS_SHOWN_MAX]),
            None
            if found.error is None or len(found.times) > RECORDS_SHOWN_MAX
            else str(found.error.kind),
        )
        for found in (batch.times_until_error(), batch.times_until_error(is_streamed=True))
    )


def times(batch: Any) -> Any:
    """Return the same of a plain batch."""
    return until_refused(batch.times()), until_refused(batch.streamed_times())
