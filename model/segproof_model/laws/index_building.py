# SPDX-License-Identifier: Apache-2.0
"""The laws of the index service: what a message enters, and what a query finds.

Used by: the harness, the generated pages.
"""

import re
from typing import Any

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.index_service import (
    CLASS,
    STRUCTURE,
    begun,
    is_of_service,
    listed,
    needs_file,
)
from segproof_model.laws.judging import succeeded
from segproof_model.laws.key_judging import (
    Visit,
    all_entries,
    entry_at,
    is_regular,
    kept_hash,
    number_at,
    size_of,
)
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.remembering import remembered

ROLLBACK = 12
BATCH = 64


def tokens(keys: str | None) -> list[str]:
    """Return what lies between single spaces and is not empty."""
    return re.findall("[^ ]+", keys or "")


@remembered
def composed(transition: Transition) -> list[str]:
    """Return the keys that a message is to be found under, in the order of their entries."""
    request = transition.arguments["request"]
    topic = "null" if request.topic is None else request.topic
    own = [request.uniq_key] if _has_own_key(transition) else []
    tags = [value for name, value in request.properties_map or () if name == "TAGS" and value]
    if not transition.before.profile.rmq_tags_indexed:
        tags = []
    return [f"{topic}#{key}" for key in own + tokens(request.keys)] + [
        f"{topic}#T#{value}" for value in tags
    ]


def _has_own_key(transition: Transition) -> bool:
    """Return whether a message has a unique key that gets an entry."""
    is_entered = transition.before.profile.rmq_unique_key_indexed
    return is_entered and transition.arguments["request"].uniq_key is not None


def is_whole(file: Any) -> bool:
    """Return whether a file is there, with all the places of a regular size."""
    return is_regular(file) and len(file.image) >= size_of(file.hash_slot_num, file.index_num)


@remembered
def built(transition: Transition) -> bool:
    """Return whether a message was offered to a service of regular files, none listed twice."""
    if not is_of_service(transition, "build_index") or not succeeded(transition):
        return False
    files = listed(transition.after)
    paths = {file.file_name for file in files}
    return len(paths) == len(files) and all(is_whole(file) for file in files)


@remembered
def added(transition: Transition) -> list[Visit]:
    """Return the entries that an operation put, in the order of the files."""
    before, after = transition.before, transition.after
    found: list[Visit] = []
    for position, file in enumerate(listed(after)):
        known = before.files[position].index_count if position < len(before.files) else 1
        end = min(file.index_count, file.index_num)
        entries = (entry_at(file, index) for index in range(max(known, 1), end))
        found += [entry for entry in entries if entry is not None]
    return found


def end_before(transition: Transition) -> int:
    """Return the end offset of the file that a message is offered to."""
    files = transition.before.files
    if not files:
        return 0
    end = int(files[-1].end_phy_offset)
    return max(end, 0) if needs_file(transition.before) else end


def present(transition: Transition) -> int:
    """Return how many keys of the message have an entry that is not to be written again."""
    if not transition.before.profile.rmq_message_indexed_once:
        return 0
    offset = transition.arguments["request"].commit_log_offset
    if offset != end_before(transition):
        return 0
    count = 0
    for file in reversed(listed(transition.before)):
        for entry in reversed(all_entries(file)):
            if entry.phy_offset != offset:
                return count
            count += 1
    return count


def is_indexed(transition: Transition) -> bool:
    """Return whether the message neither lies before the end nor was rolled back."""
    request = transition.arguments["request"]
    return bool(not _is_ignored(transition) and request.commit_log_offset >= end_before(transition))


@law("RMQSVC-11", structure=STRUCTURE, scope="step", source=CLASS)
def message_without_keys_begins_file(transition: Transition) -> bool:
    """build_index creates or rolls a file even for a message without keys."""
    if not is_of_service(transition, "build_index") or not needs_file(transition.before):
        return True
    return bool(begun(transition)) or not succeeded(transition)


@law("RMQSVC-12", structure=STRUCTURE, scope="step", source=CLASS)
def passed_message_is_ignored(transition: Transition) -> bool:
    """build_index ignores a message with offset < the file's end offset and indexes one with an
    equal offset again.

    segproof enters only the keys of the latter that have no entry yet.
    """
    if not built(transition):
        return True
    offset, end = transition.arguments["request"].commit_log_offset, end_before(transition)
    if offset < end:
        return not added(transition)
    if offset > end or not is_indexed(transition):
        return True
    missing = max(len(composed(transition)) - present(transition), 0)
    return len(added(transition)) == missing


@law("RMQSVC-13", structure=STRUCTURE, scope="step", source=CLASS)
def rolled_back_message_is_ignored(transition: Transition) -> bool:
    """build_index ignores exactly the messages whose transaction bits (flag & 12) are 12; 3.2.6
    those with 8, too.

    Among those that lie behind the end.
    """
    if not built(transition):
        return True
    request = transition.arguments["request"]
    if request.commit_log_offset <= end_before(transition):
        return not _is_ignored(transition) or not added(transition)
    is_entered = bool(added(transition)) or not composed(transition)
    return not added(transition) if _is_ignored(transition) else is_entered


def _is_ignored(transition: Transition) -> bool:
    bits = transition.arguments["request"].sys_flag & 12
    return bits == ROLLBACK or (bits == 8 and not transition.before.profile.rmq_committed_indexed)


@law("RMQSVC-14", structure=STRUCTURE, scope="step", source=CLASS)
def entries_have_an_order(transition: Transition) -> bool:
    """Entries are written in the order unique key (when not null, the empty one included; 3.2.6
    writes none), then the tokens of the keys, then (>= 5.4.0) one entry under topic + "#T#" + tags
    when the properties hold non-empty TAGS."""
    if not built(transition) or not added(transition):
        return True
    request = transition.arguments["request"]
    expected = [kept_hash(key) for key in composed(transition)]
    entries = added(transition)
    hashes = [entry.key_hash for entry in entries]
    offsets = {entry.phy_offset for entry in entries}
    return hashes == expected[len(expected) - len(hashes) :] and offsets == {
        request.commit_log_offset
    }


@law("RMQSVC-15", structure=STRUCTURE, scope="step", source=CLASS)
def keys_are_split_at_spaces(transition: Transition) -> bool:
    """Keys are split at the single ASCII space; empty tokens are skipped, other white space is part
    of a token, duplicates are kept."""
    if not built(transition) or not is_indexed(transition) or present(transition):
        return True
    request = transition.arguments["request"]
    topic = "null" if request.topic is None else request.topic
    first = int(_has_own_key(transition))
    hashes = [kept_hash(f"{topic}#{token}") for token in tokens(request.keys)]
    found = [entry.key_hash for entry in added(transition)]
    others = len(composed(transition)) - len(hashes)
    return found[first : first + len(hashes)] == hashes and len(found) == len(hashes) + others


@law("RMQSVC-16", structure=STRUCTURE, scope="step", source=CLASS)
def keys_may_lie_in_two_files(transition: Transition) -> bool:
    """The keys of one message may lie in two files; the offset rule is not repeated for the
    second.

    So all of them are entered, and each file but the last is full.
    """
    if not built(transition) or not begun(transition) or not added(transition):
        return True
    files = transition.after.files[max(len(transition.before.files) - 1, 0) :]
    full = all(file.index_count >= file.index_num for file in files[:-1])
    missing = max(len(composed(transition)) - present(transition), 0)
    return full and len(added(transition)) == missing


def _found(transition: Transition) -> tuple[int, ...]:
    """Return the offsets that a query found."""
    outcome: Any = transition.outcome
    return tuple(outcome.phy_offsets)


def answered(transition: Transition) -> bool:
    """Return whether a query was answered."""
    return is_of_service(transition, "query_offset") and succeeded(transition)


def asked_hash(transition: Transition) -> int:
    """Return the hash of what a query asks for."""
    arguments = transition.arguments
    topic, key = (
        "null" if arguments[name] is None else arguments[name] for name in ("topic", "key")
    )
    is_tag = arguments.get("index_type") == "T" and transition.before.profile.rmq_tags_indexed
    return kept_hash(f"{topic}#T#{key}" if is_tag else f"{topic}#{key}")


@remembered
def is_downward(file: Any) -> bool:
    """Return whether slots and entries lead to earlier entries only, none before the begin."""
    if not is_whole(file):
        return False
    slots = memoryview(file.image)[40 : 40 + 4 * file.hash_slot_num]
    if any(number_at(bytes(slots), at) >= file.index_count for at in range(0, len(slots), 4)):
        return False
    return all(
        entry.prev_index < entry.number and entry.time_diff >= 0 for entry in all_entries(file)
    )


def newest_first(file: Any) -> list[Visit]:
    """Return the entries of a file, the last one first."""
    return list(reversed(all_entries(file)))


@law("RMQSVC-17", structure=STRUCTURE, scope="step", source=CLASS)
def newest_offsets_come_first(transition: Transition) -> bool:
    """query_offset caps max_num at 64, returns newest file first and newest entry first, and
    neither sorts nor removes duplicates.

    The order is judged where every chain leads downwards.
    """
    if not answered(transition):
        return True
    found = _found(transition)
    if len(found) > min(transition.arguments["max_num"], BATCH):
        return False
    files = listed(transition.before)
    if not all(is_downward(file) for file in files):
        return True
    wanted = asked_hash(transition)
    rest = iter(
        entry.phy_offset
        for file in reversed(files)
        for entry in newest_first(file)
        if entry.key_hash == wanted
    )
    return all(any(offset == other for other in rest) for offset in found)


@law("RMQSVC-18", structure=STRUCTURE, scope="step", source=CLASS)
def last_update_is_reported(transition: Transition) -> bool:
    """query_offset reports the last file's end timestamp and end offset even when nothing matches,
    and 0, 0 without files."""
    if not answered(transition):
        return True
    outcome: Any = transition.outcome
    files = transition.before.files
    expected = (files[-1].end_timestamp, files[-1].end_phy_offset) if files else (0, 0)
    told = (outcome.index_last_update_timestamp, outcome.index_last_update_phyoffset)
    return bool(told == expected)


def _counts(file: Any) -> bool:
    """Return whether the begin timestamp of a file may end a query."""
    if file.profile.rmq_empty_file_hides:
        return True
    return bool(file.index_count > 1 and file.is_available)


@law("RMQSVC-19", structure=STRUCTURE, scope="step", source=CLASS)
def old_file_ends_query(transition: Transition) -> bool:
    """query_offset stops after a file whose begin timestamp is < begin, after max_num results, or
    after the first file; a file with begin timestamp 0 therefore hides all older ones from every
    query with begin > 0.

    In segproof a file without entries hides nothing.
    """
    if not answered(transition):
        return True
    begin, reached = transition.arguments["begin"], []
    for file in reversed(listed(transition.before)):
        reached.append(file)
        if _counts(file) and file.begin_timestamp < begin:
            break
    if not all(is_downward(file) for file in reached):
        return True
    wanted = asked_hash(transition)
    within = [
        entry.phy_offset
        for file in reached
        for entry in newest_first(file)
        if entry.key_hash == wanted
    ]
    return all(offset in within for offset in _found(transition))


@law("RMQSVC-20", structure=STRUCTURE, scope="step", source=CLASS)
def negative_number_is_refused(transition: Transition) -> bool:
    """A negative max_num raises invalid-argument; 2147483647 exhausts memory in releases <= 5.3.2,
    and in 5.4.0 with a type of key, and is capped first in the others."""
    if not is_of_service(transition, "query_offset"):
        return True
    max_num, outcome = transition.arguments["max_num"], transition.outcome
    if max_num < 0:
        return outcome == Raised(ErrorKind.INVALID_ARGUMENT)
    typed = transition.arguments.get("index_type") is not None
    capped = transition.before.profile.rmq_query_list_capped_first
    exhausts = max_num == 2**31 - 1 and capped in (("untyped", "none") if typed else ("none",))
    refused = outcome in (Raised(ErrorKind.OUT_OF_MEMORY), Raised(ErrorKind.INVALID_ARGUMENT))
    return refused is exhausts


@law("RMQSVC-25", structure=STRUCTURE, scope="step", source=CLASS)
def only_full_file_is_continued(transition: Transition) -> bool:
    """put_key of the service retries on a rolled file only; a put that fails on a file that is not
    full never ends upstream, so the implementation raises instead."""
    if not is_of_service(transition, "build_index"):
        return True
    before, after = transition.before, transition.after
    endless = transition.outcome == Raised(ErrorKind.ENDLESS)
    failed = transition.outcome == Raised(ErrorKind.CORRUPT_INDEX)
    raises = before.profile.rmq_failing_put_raises
    if (raises and endless) or (failed and not raises):
        return False
    continued = after.files[max(len(before.files) - 1, 0) : -1]
    return all(file.index_count >= file.index_num for file in continued)
