# SPDX-License-Identifier: Apache-2.0
"""What a lazy index does that is not loaded, by release."""

from segproof_model.kafka.format.lazy_index import LazyIndex
from segproof_model.kafka.format.log_segment_releases import ClosingLoadsIndexes
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files


def test_rename_by_release(any_kafka: Release) -> None:
    """Up to 2.5 a rename of an index that is not loaded creates it; later it moves nothing."""
    kind = any_kafka.kind(LazyIndex)
    lazy: LazyIndex[OffsetIndex] = kind(Files(), any_kafka.kind(OffsetIndex), "a.index", 40, 80)
    lazy.rename_to("b.index")
    files = ["b.index"] if any_kafka.has(ClosingLoadsIndexes) else []
    assert ("b.index", files) == (lazy.name, list(lazy.files))


def test_deletion_and_loading() -> None:
    """A file that is not there is not removed; what is loaded later is made."""
    lazy = LazyIndex(Files(), OffsetIndex, "a.index", 40, 80)
    assert not lazy.delete_if_exists()
    assert bytes(80) == lazy.get().image
