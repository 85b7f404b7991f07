# SPDX-License-Identifier: Apache-2.0
"""The laws of the lazy index.

They judge transitions whose states are lazy indexes; those of segments pass.

Used by: the harness, the generated pages.
"""

from dataclasses import replace

from segproof_model.kafka.lazy_index import LazyIndex
from segproof_model.language.outcomes import Raised
from segproof_model.laws.registry import Transition, law

STRUCTURE = "log-segment"
CLASS = "Kafka LazyIndex, since 2.4.1"


def _is_unloaded(transition: Transition) -> bool:
    """Return whether it is an operation on an index that is not loaded and need not be."""
    before = transition.before
    if not isinstance(before, LazyIndex) or before.index is not None:
        return False
    return before.profile.unloaded_index_stays_unloaded and transition.operation != "get"


@law("LAZY-1", structure=STRUCTURE, scope="step", source="Kafka LazyIndex, since 2.6.0")
def unloaded_index_creates_no_file(transition: Transition) -> bool:
    """Renaming, deleting and closing an index that is not loaded create no file.

    A renamed file is not new: the number of files does not grow.
    """
    if not _is_unloaded(transition):
        return True
    before, after = transition.before, transition.after
    return not after.is_loaded and len(after.directory.files) <= len(before.directory.files)


@law("LAZY-2", structure=STRUCTURE, scope="step", source="Kafka LazyIndex, since 2.6.0")
def missing_file_can_be_renamed(transition: Transition) -> bool:
    """Renaming an index that is not loaded raises nothing, also without a file, and changes the
    name."""
    if not _is_unloaded(transition) or transition.operation != "rename_to":
        return True
    file = transition.arguments["file"]
    return transition.outcome is None and bool(transition.after.name == file)


@law("LAZY-3", structure=STRUCTURE, scope="step", source=CLASS)
def index_is_loaded_once(transition: Transition) -> bool:
    """get opens the index the first time only; then it answers that index and changes nothing."""
    before, after = transition.before, transition.after
    if not isinstance(before, LazyIndex) or transition.operation != "get":
        return True
    if isinstance(transition.outcome, Raised):
        return before.index is None and after.index is None
    is_kept = before.index is None or after == before
    return is_kept and bool(transition.outcome == after.index)


@law("LAZY-4", structure=STRUCTURE, scope="step", source=CLASS)
def loaded_index_answers(transition: Transition) -> bool:
    """Once loaded, the index itself answers every call, and the wrapper adds nothing."""
    before, after = transition.before, transition.after
    if not isinstance(before, LazyIndex) or before.index is None or transition.operation == "get":
        return True
    own = getattr(before.index, transition.operation)(**transition.arguments)
    is_same = after.index == own.after and transition.outcome == own.outcome
    return bool(is_same and after.directory == own.after.directory)


@law("LAZY-5", structure=STRUCTURE, scope="step", source=CLASS)
def closed_index_stays(transition: Transition) -> bool:
    """After close, get returns the same index, now unmapped in releases that unmap."""
    before, after = transition.before, transition.after
    if not isinstance(before, LazyIndex) or transition.operation != "close":
        return True
    if before.index is None or isinstance(transition.outcome, Raised):
        return True
    is_unmapped = not after.index.is_mapped or not before.profile.close_unmaps
    same = replace(after.index, is_mapped=True, directory=before.directory)
    ours = same.entries == before.index.entries and same.base_offset == before.index.base_offset
    return bool(is_unmapped and ours and same.name == before.index.name)


@law("LAZY-6", structure=STRUCTURE, scope="step", source=CLASS)
def first_load_preallocates(transition: Transition) -> bool:
    """get on an index that is not loaded and has no file, deleted or never made, creates the file
    at its largest size."""
    before, after = transition.before, transition.after
    if not isinstance(before, LazyIndex) or transition.operation != "get":
        return True
    if before.index is not None or before.name in before.directory:
        return True
    if isinstance(transition.outcome, Raised):
        return before.max_index_size < before.kind.ENTRY_SIZE or before.max_index_size >= 2**31
    size = before.max_index_size // before.kind.ENTRY_SIZE * before.kind.ENTRY_SIZE
    return bool(after.directory.read(before.name) == bytes(size))
