# SPDX-License-Identifier: Apache-2.0
"""The laws of the key hash."""

from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import apply
from segproof_model.laws.register import Transition, law
from segproof_model.laws.rocketmq.format import index_entries as read
from segproof_model.laws.rocketmq.format.index_entries import Put, law_of_puts
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.key_hash import hash_code

METHOD = "RocketMQ IndexFile.indexKeyHashMethod, 4.0.0 to 5.5.1"
VECTORS = {
    "": 0,
    "AaAa": 2031744,
    "BBBB": 2031744,
    "\u4e2d\u6587": 646394,
    "\U0001f600": 1772899,
    "\ud83d": 55357,
    "polygenelubricants": -2147483648,
    "TopicTest#MessageKey": 638347386,
    "T#k": 81916,
    "T#a": 81906,
    "U#\u4e2d\U0001f600": 100547362,
}
"""Java's hash of some texts, as the JVM answers it."""


@law("RMQHASH-1", IndexFile, "Java String.hashCode")
def hash_runs_over_units(text: str, hashed: int) -> bool:
    """The key hash runs over UTF-16 code units with h = wrap32(31*h + unit), starting from 0.

    Lone surrogates count as units.
    """
    return hashed == read.java_hash(text)


@law("RMQHASH-2", IndexFile, METHOD)
def index_hash_is_not_negative(key: str, key_hash: int) -> bool:
    """index_key_hash(key) is the absolute hash, but 0 for -2147483648; 0 <= it <= 2147483647."""
    hashed = read.java_hash(key)
    expected = 0 if hashed == -(2**31) else max(hashed, -hashed)
    return key_hash == expected and 0 <= key_hash < 2**31


@law_of_puts("RMQHASH-3")
def slot_is_the_remainder(put: Put) -> bool:
    """The slot of a key is index_key_hash mod hash_slot_num: a put changes no other slot."""
    count = put.before.hash_slot_num
    old, new = (read.slots_of(file.image, count) for file in (put.before, put.after))
    changed = [number for number in range(count) if old[number] != new[number]]
    return changed in ([], [put.key_hash % count])


@law("RMQHASH-4", IndexFile, "RocketMQ IndexFile", on="put_key select_phy_offset")
def key_without_a_slot_raises(step: Transition) -> bool:
    """A null key and a file without slots raise before any byte is written."""
    before, is_null = step.before, step.arguments["key"] is None
    if step.operation == "put_key":
        asks = before.index_count < before.index_num
    else:
        asks = before.is_available and before.ref_count > 0
    if not (is_null or before.hash_slot_num == 0) or not asks or read.is_refused(before):
        return True
    kind = ErrorKind.NULL if is_null else ErrorKind.ARITHMETIC
    return step.raised(kind) and step.changed_only("resource")


@law("RMQHASH-5", IndexFile, "RocketMQ IndexService.buildKey")
def composed_key_has_no_escape(topic: str | None, key: str | None, composed: str) -> bool:
    """The composed key is topic, "#", key, unescaped; a null part becomes the word `null`."""
    first, last = ("null" if part is None else part for part in (topic, key))
    return composed == f"{first}#{last}"


@law("RMQHASH-6", IndexFile, "the JVM; RocketMQ IndexFile")
def vectors_are_reproduced() -> bool:
    """The known hashes are reproduced, and a key whose hash is -2147483648 is found under 0."""
    if any(hash_code(text) != hashed for text, hashed in VECTORS.items()):
        return False
    lowest = "polygenelubricants"
    file = apply(IndexFile(Files(), "0", 3, 4), "put_key", lowest, 100, 1000).after
    found = [apply(file, "select_phy_offset", (), key, 9, 0, 2000).outcome for key in (lowest, "")]
    is_in_slot_0 = read.slots_of(file.image, 3) == (1, 0, 0)
    return is_in_slot_0 and read.entry_at(file, 1) == (1, 0, 100, 0, 0) and found == [(100,)] * 2
