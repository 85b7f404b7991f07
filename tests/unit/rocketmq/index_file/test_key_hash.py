# SPDX-License-Identifier: Apache-2.0
"""The hash of a key: that of the model, of one key and of many, from texts, bytes and Arrow."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import InvalidArgumentError, NullError
from segproof.kernels import rocketmq_index as kernels
from segproof.rocketmq import key_hash
from segproof.rocketmq.key_hash import build_key, hash_code, index_key_hash, index_key_hash_many
from segproof_model.rocketmq.format import key_hash as model

pytestmark = pytest.mark.usefixtures("way")
KERNELS = (
    "hash_of_units",
    "hashes_of_joined",
    "hashes_of_rows",
    "hashes_of_texts",
    "key_hash_of_units",
)
VECTORS = {
    "": 0,
    "AaAa": 2031744,
    "BBBB": 2031744,
    "\u4e2d\u6587": 646394,
    "\U0001f600": 1772899,
    "\ud83d": 55357,
    "polygenelubricants": -2147483648,
    "TopicTest#MessageKey": 638347386,
    "TopicTest#7F000001000000": -572023246,
    "T#k": 81916,
    "T#a": 81906,
}
LETTERS = st.sampled_from(
    "aZ\0\x7f\x80\u07ff\u0800\u4e2d\ud7ff\ud800\udfff\ue000\uffff\U00010000\U0010ffff"
)
TEXTS = st.text(LETTERS, max_size=12) | st.text("ab", max_size=40) | st.text(max_size=8)
SOUND = TEXTS.filter(lambda text: not any(0xD800 <= ord(one) < 0xE000 for one in text))


class ArrowStrings:
    """An array of strings with the memory layout and the accessors of Arrow's."""

    def __init__(self, texts: Sequence[str], *, large: bool = False, before: str = "") -> None:
        parts = [text.encode() for text in (*[before] * bool(before), *texts, "behind")]
        ends = np.cumsum([0, *map(len, parts)])
        self.type = "large_string" if large else "string"
        self.offset = int(bool(before))
        self.null_count = 0
        self.data: memoryview | None = memoryview(b"".join(parts))
        self.bounds = array("q" if large else "i", ends.tolist())
        self.length = len(texts)

    def __len__(self) -> int:
        return self.length

    def buffers(self) -> list[Any]:
        """Return validity, bounds and bytes."""
        return [None, memoryview(self.bounds).cast("B"), self.data]


class Chunked:
    """Several arrays one after the other."""

    def __init__(self, *chunks: ArrowStrings) -> None:
        self.chunks = list(chunks)


@pytest.mark.checks("RMQHASH-1", "RMQHASH-2", "RMQHASH-6")
def test_vectors() -> None:
    """The hashes that the JVM gives, and what an entry keeps of them."""
    assert VECTORS == {text: hash_code(text) for text in VECTORS}
    assert 0 == index_key_hash("polygenelubricants")
    assert 100547362 == index_key_hash("U#\u4e2d\U0001f600")
    many = index_key_hash_many(list(VECTORS))
    assert [max(abs(one), 0) % 2**31 for one in VECTORS.values()] == many.tolist()


@pytest.mark.checks("RMQHASH-1", "RMQHASH-2")
@given(st.lists(TEXTS, max_size=8))
def test_texts_have_the_hashes_of_the_model(texts: list[str]) -> None:
    """One by one and all at once, with lone surrogates."""
    expected = [model.index_key_hash(text) for text in texts]
    assert [model.hash_code(text) for text in texts] == [hash_code(text) for text in texts]
    assert expected == [index_key_hash(text) for text in texts]
    for keys in (texts, tuple(texts), np.array(texts, object)):
        assert expected == index_key_hash_many(keys).tolist()


@pytest.mark.checks("RMQHASH-1", "RMQHASH-2")
@given(st.lists(SOUND, max_size=8), st.booleans(), st.sampled_from(["", "x", "\u4e2d"]))
def test_arrow_strings_have_the_hashes_of_texts(texts: list[str], large: bool, before: str) -> None:
    """Read where they lie, with either width of bounds, also those of a slice and of chunks."""
    expected = [model.index_key_hash(text) for text in texts]
    strings = ArrowStrings(texts, large=large, before=before)
    assert expected == index_key_hash_many(strings).tolist()
    assert expected * 2 == index_key_hash_many(Chunked(strings, strings)).tolist()
    assert [] == index_key_hash_many(Chunked()).tolist()


@pytest.mark.checks("RMQHASH-1", "RMQHASH-2")
@given(st.lists(SOUND, max_size=8), st.integers(1, 3))
def test_rows_of_bytes_have_the_hashes_of_texts(texts: list[str], step: int) -> None:
    """A numpy array of bytes, contiguous or not; zero bytes at the end of a row are none."""
    rows = np.array([text.encode() for text in texts], "S60")[::step]
    expected = [model.index_key_hash(text.rstrip("\0")) for text in texts[::step]]
    assert expected == index_key_hash_many(rows).tolist()


@given(st.lists(st.binary(min_size=1, max_size=6), min_size=1, max_size=4))
def test_bytes_must_be_what_python_reads_as_utf8(rows: list[bytes]) -> None:
    """No overlong form, no surrogate, nothing beyond the last code point, nothing cut off."""
    rows = [row.rstrip(b"\0") for row in rows]
    try:
        expected = [model.index_key_hash(row.decode()) for row in rows]
    except UnicodeDecodeError:
        with pytest.raises(InvalidArgumentError, match="not UTF-8"):
            index_key_hash_many(np.array(rows, "S6"))
    else:
        assert expected == index_key_hash_many(np.array(rows, "S6")).tolist()


def test_every_beginning_of_a_character() -> None:
    """The first two bytes of every character, and what Python makes of them."""
    pairs = [bytes([one, two]) for one in range(128, 256) for two in range(1, 256)]
    for more in (b"", b"\x80", b"\x80\x80", b"\xbf\xbf"):
        for pair in pairs:
            text = (pair + more).decode(errors="ignore").encode()
            is_sound = text == pair + more
            hashed = kernels.hash_of_utf8.interpreted(pair + more, 0, len(pair + more), 0)
            assert is_sound == (hashed >= 0), (pair, more)


@pytest.mark.checks("RMQHASH-5")
def test_composed_keys() -> None:
    """Nothing is escaped, and null is four letters."""
    assert "null#uu" == build_key(None, "uu")
    assert "T#null" == build_key("T", None)
    assert build_key("a#b", "c") == build_key("a", "b#c")


@pytest.mark.checks("RMQHASH-4")
def test_null_keys_are_refused() -> None:
    """Wherever a null may stand; the message says where."""
    with pytest.raises(NullError, match="key 1 is None"):
        index_key_hash_many(["a", None])
    strings = ArrowStrings(["a"])
    strings.null_count = 1
    with pytest.raises(NullError):
        index_key_hash_many(strings)


def test_what_is_no_row_of_keys_is_refused() -> None:
    """One text, numbers, a table, another type of Arrow, bounds outside of the bytes."""
    outside, falling, negative = (ArrowStrings(["ab", "cd"]) for _ in range(3))
    outside.bounds[2] = 99
    falling.bounds[1] = 4
    falling.bounds[2] = 3
    negative.bounds[0] = -1
    dictionary = ArrowStrings(["a"])
    dictionary.type = "dictionary<values=string, indices=int32, ordered=0>"
    wrong: list[Any] = ["abc", b"abc", np.zeros(3), np.zeros((2, 2), "S3"), [b"a"], [1]]
    for keys in [*wrong, outside, falling, negative, dictionary]:
        with pytest.raises(InvalidArgumentError):
            index_key_hash_many(keys)


def test_nothing_to_hash() -> None:
    """No keys, empty keys, rows of no width, an Arrow array without bytes."""
    empty = ArrowStrings(["", ""])
    empty.data, empty.bounds = None, array("i", [0, 0, 0])
    assert [0, 0] == index_key_hash_many(empty).tolist()
    assert [] == index_key_hash_many(ArrowStrings([])).tolist()
    nothing: list[Any] = [[], np.empty(0, "S4"), np.empty(0, object)]
    for keys in nothing:
        assert [] == index_key_hash_many(keys).tolist()
    assert [0, 0] == index_key_hash_many(np.zeros(2, "S4")).tolist()


def test_module_needs_no_arrow() -> None:
    """Arrow's arrays are known by what they offer; nothing of pyarrow is imported."""
    assert "pyarrow" not in vars(key_hash)
