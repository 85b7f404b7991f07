# SPDX-License-Identifier: Apache-2.0
"""The laws of the index service: the entries of a message, and the answers of a query."""

import re
from collections.abc import Sequence
from itertools import takewhile, zip_longest
from typing import Any

from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.register import Transition, has, law, laws_of
from segproof_model.laws.rocketmq.broker.index_service import CLASS, begun, is_full, needs_file
from segproof_model.laws.rocketmq.format import index_entries as read
from segproof_model.rocketmq.broker import index_service_deviations as ours
from segproof_model.rocketmq.broker import index_service_releases as older
from segproof_model.rocketmq.broker.index_service import IndexService


def is_whole(file: Any) -> bool:
    """Return whether a file exists, with all slots and entries of a regular size."""
    return read.is_regular(file) and len(file.image) >= read.size_of(
        file.hash_slot_num, file.index_num
    )


class Building:
    """A message that was offered to a service, and the entries that were put."""

    def __init__(self, step: Transition) -> None:
        before, after, request = step.before, step.after, step.arguments["request"]
        self.begun = begun(step)
        self.offset: int = request.commit_log_offset
        ignored = (8, 12) if has(before, older.CommittedIsNotIndexed) else (12,)
        self.is_ignored = request.sys_flag & 12 in ignored
        topic = "null" if request.topic is None else request.topic
        has_own = request.uniq_key is not None and not has(before, older.UniqueKeyIsNotIndexed)
        own = [request.uniq_key] if has_own else []
        tokens = re.findall("[^ ]+", request.keys or "")
        tags = dict(request.properties_map or ()).get("TAGS")
        tagged = [f"T#{tags}"] if tags and not has(before, older.TagsAreNotIndexed) else []
        self.hashes = [read.kept_hash(f"{topic}#{key}") for key in (*own, *tokens, *tagged)]
        """The keys of the message, in the order of their entries."""
        self.tokens = slice(len(own), len(own) + len(tokens))
        """The positions of the tokens of `KEYS` among them: non-empty, between single spaces."""
        known = [len(read.all_entries(file)) for file in before.index_files]
        new = zip_longest(after.index_files, known, fillvalue=0)
        self.added = [entry for file, count in new for entry in read.all_entries(file)[count:]]
        self.end = before.index_files[-1].end_phy_offset if before.index_files else 0
        """End offset of the file that the message is offered to."""
        if needs_file(before):
            self.end = max(self.end, 0)
        self.present = self._present(before)

    def _present(self, before: Any) -> int:
        """Return how many keys have an entry that is not to be written again."""
        if self.offset != self.end or not has(before, ours.MessageIsIndexedOnce):
            return 0
        there = [one.phy_offset for file in before.index_files for one in read.all_entries(file)]
        return len(list(takewhile(self.offset.__eq__, reversed(there))))

    @property
    def is_complete(self) -> bool:
        """Whether each key that had no entry has one."""
        return len(self.added) == max(len(self.hashes) - self.present, 0)


def built(step: Transition) -> Building | None:
    """Return what was built of regular files, none of them listed twice, or begun with entries."""
    files = step.after.index_files
    if has(step.before, ours.OpeningReadsHeader) and any(
        file.file_name in step.before.files for file in begun(step)
    ):
        return None
    is_plain = len({file.file_name for file in files}) == len(files) and all(map(is_whole, files))
    return Building(step) if step.succeeded and is_plain else None


law_of_building = laws_of(built, IndexService, CLASS, on="build_index")


@law("RMQSVC-11", IndexService, CLASS, on="build_index")
def message_without_keys_begins_file(step: Transition) -> bool:
    """build_index creates or rolls a file even for a message without keys."""
    return not (step.succeeded and needs_file(step.before)) or bool(begun(step))


@law_of_building("RMQSVC-12")
def passed_message_is_ignored(building: Building) -> bool:
    """build_index ignores a message with offset < the file's end offset and indexes a message with
    an equal offset again.

    segproof adds only the missing entries of that message.
    """
    if building.offset != building.end or building.is_ignored:
        return building.offset >= building.end or not building.added
    return building.is_complete


@law_of_building("RMQSVC-13")
def rolled_back_message_is_ignored(building: Building) -> bool:
    """build_index ignores exactly the messages whose transaction bits (flag & 12) are 12; 3.2.6
    also those with 8.

    Only messages at or after the end offset are judged.
    """
    if building.is_ignored:
        return not building.added
    is_entered = bool(building.added) or not building.hashes
    return is_entered or building.offset <= building.end


@law_of_building("RMQSVC-14")
def entries_have_an_order(building: Building) -> bool:
    """Entries are written in the order unique key (when not null, the empty one included; 3.2.6
    writes none), then the tokens of the keys, then (>= 5.4.0) one entry under topic + "#T#" + tags
    when the properties hold non-empty TAGS."""
    entries = [(building.offset, each) for each in building.hashes]
    added = [(one.phy_offset, one.key_hash) for one in building.added]
    return added == entries[len(entries) - len(added) :]


@law_of_building("RMQSVC-15")
def keys_are_split_at_spaces(building: Building) -> bool:
    """Keys are split at the single ASCII space; empty tokens are skipped, other white space is part
    of a token, duplicates are kept."""
    if building.present or building.is_ignored or building.offset < building.end:
        return True
    found = [one.key_hash for one in building.added]
    is_split = found[building.tokens] == building.hashes[building.tokens]
    return is_split and building.is_complete


@law_of_building("RMQSVC-16")
def keys_may_lie_in_two_files(building: Building) -> bool:
    """The keys of one message may be in two files; the offset rule is not repeated for the second
    file.

    So all keys get entries. Each file but the last is full (RMQSVC-25).
    """
    return not (building.begun and building.added) or building.is_complete


@law("RMQSVC-25", IndexService, CLASS, on="build_index")
def only_full_file_is_continued(step: Transition) -> bool:
    """put_key of the service retries only on a new file; upstream a failed put into a file that is
    not full is repeated for ever, so the implementation raises.
    """
    raises = has(step.before, ours.FailingPutIsRefused)
    is_wrong = step.raised(ErrorKind.ENDLESS if raises else ErrorKind.CORRUPT_INDEX)
    continued = step.after.index_files[max(len(step.before.index_files) - 1, 0) : -1]
    return not is_wrong and all(map(is_full, continued))


class Answer:
    """A query that was answered."""

    def __init__(self, step: Transition) -> None:
        outcome: Any = step.outcome
        self.step, self.files = step, step.before.index_files
        self.found: tuple[int, ...] = outcome[0]
        self.last_update: list[int] = [*outcome[1:]]
        names = [step.arguments["topic"], step.arguments["key"]]
        if step.arguments.get("index_type") == "T" and not has(
            step.before, older.TagsAreNotIndexed
        ):
            names.insert(1, "T")
        self.key_hash = read.kept_hash("#".join("null" if n is None else n for n in names))

    def matching(self, files: Sequence[Any]) -> list[int]:
        """Return the offsets under the hash in files, newest file and newest entry first."""
        entries = [one for file in files for one in read.all_entries(file)]
        return [one.phy_offset for one in reversed(entries) if one.key_hash == self.key_hash]


def answered(step: Transition) -> Answer | None:
    """Return the answer that a step was."""
    return Answer(step) if step.succeeded else None


law_of_answers = laws_of(answered, IndexService, CLASS, on="query_offset")


def is_downward(file: Any) -> bool:
    """Return whether slots and entries lead to earlier entries only, none before the begin."""
    entries = read.all_entries(file)
    return (
        is_whole(file)
        and all(head < file.index_count for head in read.slots_of(file.image, file.hash_slot_num))
        and all(one.prev_index < one.number and one.time_diff >= 0 for one in entries)
    )


@law_of_answers("RMQSVC-17")
def newest_offsets_come_first(answer: Answer) -> bool:
    """query_offset caps max_num at 64, returns newest file first and newest entry first, and
    neither sorts nor removes duplicates.

    The order is judged where every chain leads downwards.
    """
    if len(answer.found) > min(answer.step.arguments["max_num"], 64):
        return False
    rest = iter(answer.matching(answer.files))
    return not all(map(is_downward, answer.files)) or all(offset in rest for offset in answer.found)


@law_of_answers("RMQSVC-18")
def last_update_is_reported(answer: Answer) -> bool:
    """query_offset reports the last file's end timestamp and end offset even when nothing matches,
    and 0, 0 without files."""
    ends = [[file.end_timestamp, file.end_phy_offset] for file in answer.files]
    return answer.last_update == [[0, 0], *ends][-1]


@law_of_answers("RMQSVC-19")
def old_file_ends_query(answer: Answer) -> bool:
    """query_offset stops after a file whose begin timestamp is < begin, after max_num results, or
    after the first file; a file with begin timestamp 0 therefore hides all older ones from every
    query with begin > 0.

    In segproof a file without entries hides nothing.
    """
    files, begin = answer.files, answer.step.arguments["begin"]
    if has(answer.step.before, ours.EmptyFileHidesNothing):
        files = [one for one in files if one.index_count > 1 and one.is_available]
    old = [place for place, one in enumerate(files) if one.begin_timestamp < begin]
    reached = files[max(old, default=0) :]
    is_sound = all(map(is_downward, reached))
    return not is_sound or set(answer.found) <= set(answer.matching(reached))


@law("RMQSVC-20", IndexService, CLASS, on="query_offset")
def negative_number_is_refused(step: Transition) -> bool:
    """A negative max_num raises invalid-argument; 2147483647 exhausts memory in releases <= 5.3.2,
    and in 5.4.0 with a type of key, and is capped first in the others."""
    max_num, is_typed = step.arguments["max_num"], step.arguments.get("index_type") is not None
    makes = has(step.before, older.QueryMakesItsList)
    makes |= is_typed and has(step.before, older.TypedQueryMakesItsList)
    is_exhausted = step.raised(ErrorKind.OUT_OF_MEMORY) is (makes and max_num == 2**31 - 1)
    is_told = is_exhausted and step.raised(ErrorKind.INVALID_ARGUMENT) is (max_num < 0)
    return is_told or not step.before.store_checkpoint.is_mapped
