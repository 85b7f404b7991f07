# SPDX-License-Identifier: Apache-2.0
"""The hash of a message key: which slot it belongs to, and what an entry keeps of it.

Upstream: Java String.hashCode; RocketMQ 5.5.1, IndexFile.indexKeyHashMethod and
    IndexService.buildKey.
Laws: RMQHASH-1, RMQHASH-2, RMQHASH-5, RMQHASH-6.
Not covered: a null key, which its callers refuse.
"""

from segproof_model.language.integers import wrap32


def utf16_units(text: str) -> list[int]:
    """Return the UTF-16 code units of a text; a lone surrogate is one of them.

    >>> [hex(unit) for unit in utf16_units("a\\U0001f600\\ud83d")]
    ['0x61', '0xd83d', '0xde00', '0xd83d']
    """
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[start : start + 2], "big") for start in range(0, len(data), 2)]


def hash_code(text: str) -> int:
    """Return Java's hash of a text, a signed 32-bit number (RMQHASH-1).

    >>> hash_code(""), hash_code("AaAa"), hash_code("BBBB"), hash_code("polygenelubricants")
    (0, 2031744, 2031744, -2147483648)
    """
    hashed = 0
    for unit in utf16_units(text):
        hashed = wrap32(31 * hashed + unit)
    return hashed


def index_key_hash(key: str) -> int:
    """Return the hash that an entry keeps: 0 <= hash <= 2147483647 (RMQHASH-2).

    The one number whose absolute value 32 bits don't hold gives 0.

    >>> index_key_hash("T#k"), index_key_hash("polygenelubricants")
    (81916, 0)
    """
    return max(wrap32(abs(hash_code(key))), 0)


def build_key(topic: str | None, key: str | None) -> str:
    """Return the key that is hashed, without any escaping (RMQHASH-5).

    >>> build_key("T", "k"), build_key(None, "uu")
    ('T#k', 'null#uu')
    """
    return "#".join("null" if part is None else part for part in (topic, key))
