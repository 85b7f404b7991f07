# SPDX-License-Identifier: Apache-2.0
"""Keys of an index file from Arrow's own arrays, as Spark hands them over."""

import pyarrow as pa
import pytest

from segproof.errors import InvalidArgumentError, NullError
from segproof.rocketmq import index_key_hash, index_key_hash_many

TEXTS = ["", "T#a", "\u4e2d\U0001f600", "polygenelubricants", "x" * 100]


@pytest.mark.checks("RMQHASH-1", "RMQHASH-2")
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_strings_have_the_hashes_of_texts(kind: pa.DataType) -> None:
    """Whole arrays, slices, chunks, and arrays without anything in them."""
    expected = [index_key_hash(text) for text in TEXTS]
    keys = pa.array(TEXTS, kind)
    assert expected == index_key_hash_many(keys).tolist()
    assert expected[1:4] == index_key_hash_many(keys.slice(1, 3)).tolist()
    assert expected * 2 == index_key_hash_many(pa.chunked_array([keys, keys])).tolist()
    assert [] == index_key_hash_many(pa.array([], kind)).tolist()
    assert [0, 0] == index_key_hash_many(pa.array(["", ""], kind)).tolist()


def test_what_holds_no_strings_is_refused() -> None:
    """Nulls, numbers, bytes, dictionaries."""
    with pytest.raises(NullError):
        index_key_hash_many(pa.array(["a", None]))
    for keys in (pa.array([1]), pa.array([b"a"]), pa.array(["a"]).dictionary_encode()):
        with pytest.raises(InvalidArgumentError):
            index_key_hash_many(keys)
