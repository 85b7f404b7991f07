# SPDX-License-Identifier: Apache-2.0
"""The laws of the lazy index."""

from segproof_model.kafka.format.lazy_index import LazyIndex
from segproof_model.kafka.format.log_segment_releases import ClosingLoadsIndexes
from segproof_model.language.states import apply
from segproof_model.laws.kafka.format.index_slots import size_of_entry
from segproof_model.laws.register import Transition, law, retired

CLASS = "Kafka LazyIndex, since 2.4.1"
UNLOADED = "Kafka LazyIndex, since 2.6.0"
CALLS = "rename_to delete_if_exists close close_handler"


@law("LAZY-1", LazyIndex, UNLOADED, on=CALLS, unless=ClosingLoadsIndexes)
def unloaded_index_creates_no_file(step: Transition) -> bool:
    """Renaming, deleting and closing an index that is not loaded create no file.

    A renamed file is not new: the number of files does not grow.
    """
    before, after = step.before, step.after
    grows = len(after.files.images) > len(before.files.images)
    return before.index is not None or (after.index is None and not grows)


@law("LAZY-2", LazyIndex, UNLOADED, on="rename_to", unless=ClosingLoadsIndexes)
def missing_file_can_be_renamed(step: Transition) -> bool:
    """Renaming an index that is not loaded changes its name, and raises nothing, even without a
    file.
    """
    is_renamed = step.succeeded and step.after.name == step.arguments["file"]
    return step.before.index is not None or is_renamed


@law("LAZY-3", LazyIndex, CLASS, on="get")
def index_is_loaded_once(step: Transition) -> bool:
    """get opens the index the first time only, and then changes nothing."""
    if step.before.index is not None:
        return step.succeeded and step.is_unchanged
    return step.succeeded is (step.after.index is not None)


@law("LAZY-4", LazyIndex, CLASS, on=CALLS)
def loaded_index_answers(step: Transition) -> bool:
    """Once loaded, the index itself answers every call, and the wrapper adds nothing."""
    if step.before.index is None:
        return True
    own = apply(step.before.index, step.operation, **step.arguments)
    return bool(own.outcome == step.outcome and own.after == step.after.index)


retired(
    "LAZY-5",
    LazyIndex,
    "After close, get returns the same index, now unmapped in releases that unmap.",
    LazyIndex.close,
)


@law("LAZY-6", LazyIndex, CLASS, on="get")
def first_load_preallocates(step: Transition) -> bool:
    """get on an index that is not loaded and has no file, deleted or never made, creates the file
    at its largest size."""
    before, entry = step.before, size_of_entry(step.before.index_kind)
    if before.index is not None or before.name in before.files:
        return True
    slots = before.max_index_size_bytes // entry
    is_made = step.succeeded and step.after.index.image == bytes(slots * entry)
    return is_made is (slots > 0 and before.max_index_size_bytes < 2**31)
