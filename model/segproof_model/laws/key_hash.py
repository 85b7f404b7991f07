# SPDX-License-Identifier: Apache-2.0
"""The laws of the key hash.

Used by: the harness, `verify`'s tests, the generated pages.
"""

from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.judging import raised
from segproof_model.laws.key_judging import (
    entry_at,
    is_of_file,
    is_refused,
    java_hash,
    kept_hash,
    number_at,
    put_hash,
    slot_place,
    written,
)
from segproof_model.laws.registry import Transition, law
from segproof_model.rocketmq.index_file import IndexFile
from segproof_model.rocketmq.key_hash import build_key, hash_code, index_key_hash

STRUCTURE = "index-file"
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
}
"""Java's hash of some texts, as the JVM answers it."""


@law("RMQHASH-1", structure=STRUCTURE, scope="pure", source="Java String.hashCode")
def hash_runs_over_units(text: str, hashed: int) -> bool:
    """The key hash runs over UTF-16 code units with h = wrap32(31*h + unit), starting from 0.

    Lone surrogates count as units.
    """
    return hashed == java_hash(text)


@law("RMQHASH-2", structure=STRUCTURE, scope="pure", source=METHOD)
def index_hash_is_not_negative(key: str, key_hash: int) -> bool:
    """index_key_hash(key) is the absolute hash, but 0 for -2147483648; 0 <= it <= 2147483647."""
    hashed = java_hash(key)
    expected = 0 if hashed == -(2**31) else max(hashed, -hashed)
    return key_hash == expected and 0 <= key_hash < 2**31


@law("RMQHASH-3", structure=STRUCTURE, scope="step", source="RocketMQ IndexFile.putKey")
def slot_is_the_remainder(transition: Transition) -> bool:
    """The slot of a key is index_key_hash mod hash_slot_num: no put changes another one."""
    if not written(transition):
        return True
    before, after = transition.before, transition.after
    slots_end = 40 + 4 * before.hash_slot_num
    own = 40 + 4 * (put_hash(transition) % before.hash_slot_num)
    return all(
        number_at(before.image, place) == number_at(after.image, place)
        for place in range(40, slots_end, 4)
        if place != own
    )


@law("RMQHASH-4", structure=STRUCTURE, scope="step", source="RocketMQ IndexFile, 4.0.0 to 5.5.1")
def key_without_a_slot_raises(transition: Transition) -> bool:
    """A null key and a file without slots raise before any byte is written."""
    if not is_of_file(transition, "put_key", "select_phy_offset"):
        return True
    before, key = transition.before, transition.arguments["key"]
    has_slot = key is not None and before.hash_slot_num != 0
    if transition.operation == "put_key":
        asks = before.index_count < before.index_num
    else:
        asks = before.is_available and before.ref_count > 0
    if has_slot or not asks or is_refused(before):
        return True
    kind = ErrorKind.NULL if key is None else ErrorKind.ARITHMETIC
    unchanged = transition.after.image == before.image and transition.after.header == before.header
    return raised(transition, kind) and bool(unchanged)


@law("RMQHASH-5", structure=STRUCTURE, scope="pure", source="RocketMQ IndexService.buildKey")
def composed_key_has_no_escape(topic: str | None, key: str | None, composed: str) -> bool:
    """The composed key is topic, "#", key, without escaping; a null part is the word `null`."""
    parts = [part if part is not None else "null" for part in (topic, key)]
    return composed == f"{parts[0]}#{parts[1]}"


@law("RMQHASH-6", structure=STRUCTURE, scope="pure", source="the JVM; RocketMQ IndexFile")
def vectors_are_reproduced() -> bool:
    """The known hashes are reproduced, and a key whose hash is -2147483648 is found under 0."""
    if any(hash_code(text) != hashed for text, hashed in VECTORS.items()):
        return False
    if index_key_hash(build_key("U", "\u4e2d\U0001f600")) != 100547362:
        return False
    lowest = "polygenelubricants"
    file = IndexFile.open("0", 3, 4).after
    assert isinstance(file, IndexFile)
    step = file.put_key(lowest, 100, 1000)
    entry = entry_at(step.after, 1)
    found = [step.after.select_phy_offset((), key, 9, 0, 2000).outcome for key in (lowest, "")]
    in_slot_0 = number_at(step.after.image, slot_place(step.after, kept_hash(""))) == 1
    return found == [(100,), (100,)] and in_slot_0 and entry is not None and entry.key_hash == 0
