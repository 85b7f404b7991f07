# SPDX-License-Identifier: Apache-2.0
"""The hash of a message key: which slot it belongs to, and what an entry keeps of it.

Upstream: Java String.hashCode; RocketMQ IndexFile.indexKeyHashMethod and IndexService.buildKey
    (4.7.0 to 5.5.1).
Laws: RMQHASH-1, RMQHASH-2, RMQHASH-5, RMQHASH-6.
Not covered: Arrow's string views and dictionaries; cast them to strings.
"""

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from segproof.errors import InvalidArgumentError, NullError, WrongTypeError
from segproof.kernels.rocketmq_index import (
    hash_of_units,
    hashes_of_joined,
    hashes_of_rows,
    hashes_of_texts,
    key_hash_of_units,
)

Keys: TypeAlias = Any
"""Many keys: texts, a numpy array of bytes (kind S) that hold UTF-8, or Arrow strings."""
Int64Array = NDArray[np.int64]

_UTF16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_ARROW_BOUNDS = {"string": np.int32, "large_string": np.int64}


def _units(text: str) -> bytes | memoryview:
    """Return the UTF-16 units of a text as kernels take them."""
    if text.isascii():
        return text.encode()
    return memoryview(text.encode(_UTF16, "surrogatepass")).cast("H")


def hash_code(text: str) -> int:
    """Return Java's hash of a text, a signed 32-bit number; a lone surrogate is one unit.

    Laws: RMQHASH-1.
    """
    hashed = hash_of_units(_units(text))
    return hashed if hashed < 2**31 else hashed - 2**32


def index_key_hash(key: str) -> int:
    """Return the hash that an entry keeps: 0 <= hash <= 2147483647.

    The one number whose absolute value 32 bits don't hold gives 0. Laws: RMQHASH-2.
    """
    return key_hash_of_units.call(key.encode() if key.isascii() else _units(key))


def build_key(topic: str | None, key: str | None) -> str:
    """Return the key that is hashed, without any escaping; null is four letters (RMQHASH-5).

    Raises: WrongTypeError for a topic or key that is neither a text nor None.
    """
    for part in (topic, key):
        if not isinstance(part, str | None):
            raise no_text(part)
    return f"{'null' if topic is None else topic}#{'null' if key is None else key}"


def no_text(key: object, path: str | None = None) -> NullError | WrongTypeError:
    """Return the error for a key that is no text."""
    if key is None:
        return NullError("the key is None", law="RMQHASH-4", path=path)
    hint = "decode it first, key.decode() if it is UTF-8" if isinstance(key, bytes) else None
    return WrongTypeError(f"the key is {type(key).__name__}, not str", path=path, hint=hint)


def index_key_hash_many(keys: Keys) -> Int64Array:
    """Return `index_key_hash` of each key, int64 of shape (keys,).

    Keys are a sequence of texts; or a numpy array of bytes, each without the zero bytes at its end;
    or an Arrow array of strings, chunked or not. Bytes are UTF-8, as strict as Python reads it.

    Raises: NullError where a key is None or null; InvalidArgumentError for bytes that are not
    UTF-8, and for anything else than keys.
    """
    if isinstance(keys, np.ndarray):
        if keys.ndim != 1 or keys.dtype.kind not in "SUO":
            raise InvalidArgumentError(f"keys must be one row of bytes or texts, not {keys.dtype}")
        return _hashes_of_rows(keys) if keys.dtype.kind == "S" else _hashes(keys.tolist())
    if hasattr(keys, "chunks"):
        parts = [_hashes_of_arrow(chunk) for chunk in keys.chunks]
        return np.concatenate([np.empty(0, np.int64), *parts])
    if hasattr(keys, "buffers"):
        return _hashes_of_arrow(keys)
    return _hashes(keys)


def _hashes(keys: Sequence[str]) -> Int64Array:
    """Return the hashes of texts: joined first, which is faster than looking at each."""
    if isinstance(keys, str | bytes):
        raise InvalidArgumentError("one text is not a row of keys; put it into a list")
    texts = keys if isinstance(keys, list) else list(keys)
    try:
        joined = "\0".join(texts)
    except TypeError:
        if None in texts:
            raise NullError(f"key {texts.index(None)} is None", law="RMQHASH-4") from None
        raise InvalidArgumentError("keys must be texts") from None
    hashes_of_joined.announce(len(texts))
    if not hashes_of_joined.is_compiled or joined.count("\0") >= max(len(texts), 1):
        return np.fromiter(map(index_key_hash, texts), np.int64, len(texts))
    hashes = np.empty(len(texts), np.int64)
    data = memoryview(joined.encode("utf-8", "surrogatepass"))
    return _checked(hashes, hashes_of_joined(data, 1, hashes.data))


def _checked(hashes: Int64Array, done: int) -> Int64Array:
    """Return the hashes if all of them are done. Raises: InvalidArgumentError."""
    if done < len(hashes):
        raise InvalidArgumentError(f"key {done} is not UTF-8", law="RMQHASH-1")
    return hashes


def _hashes_of_rows(keys: NDArray[np.bytes_]) -> Int64Array:
    hashes = np.zeros(len(keys), np.int64)
    if not keys.size or not keys.itemsize:
        return hashes
    data = np.ascontiguousarray(keys).view(np.uint8).data.toreadonly()
    hashes_of_rows.announce(len(keys))
    return _checked(hashes, hashes_of_rows(data, keys.itemsize, hashes.data))


def _hashes_of_arrow(keys: Any) -> Int64Array:
    """Return the hashes of an Arrow array of strings, read where it lies; needs no pyarrow."""
    size = _ARROW_BOUNDS.get(str(keys.type))
    if size is None:
        raise InvalidArgumentError(f"keys must be strings, not Arrow's {keys.type}")
    if keys.null_count:
        raise NullError("a key is null", law="RMQHASH-4")
    if not len(keys):
        return np.empty(0, np.int64)
    _, bounds_buffer, data_buffer = keys.buffers()
    end = keys.offset + len(keys) + 1
    bounds = np.frombuffer(bounds_buffer, size, end)[keys.offset :].astype(np.int64)
    data = memoryview(b"") if data_buffer is None else memoryview(data_buffer).cast("B")
    if bounds[0] < 0 or bounds[-1] > len(data) or bool((bounds[1:] < bounds[:-1]).any()):
        raise InvalidArgumentError("the bounds of the Arrow array lie outside its bytes")
    hashes = np.empty(len(keys), np.int64)
    hashes_of_texts.announce(len(hashes))
    return _checked(hashes, hashes_of_texts(data.toreadonly(), bounds.data, 0, hashes.data))
