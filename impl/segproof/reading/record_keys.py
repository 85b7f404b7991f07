# SPDX-License-Identifier: Apache-2.0
"""Which keys a message has in the index.

Laws: RMQSVC-13 to RMQSVC-15.
"""

from segproof.rocketmq.key_hash import build_key
from segproof.rocketmq.message import ROLLED_BACK, DispatchRequest

TAGS, TAG_MARK = "TAGS", "T#"


def keys_of(request: DispatchRequest) -> list[str]:
    """Return the keys that a message has in the index, without that of its tags.

    Laws: RMQSVC-13 to RMQSVC-15.
    """
    if request.sys_flag & ROLLED_BACK == ROLLED_BACK:
        return []
    found = [] if request.uniq_key is None else [build_key(request.topic, request.uniq_key)]
    tokens = (request.keys or "").split(" ")
    return found + [build_key(request.topic, token) for token in tokens if token]


def tag_key_of(request: DispatchRequest) -> str | None:
    """Return the key of a message's tags, which releases from 5.4.0 index, or None."""
    if request.sys_flag & ROLLED_BACK == ROLLED_BACK or request.properties_map is None:
        return None
    tags = dict(request.properties_map).get(TAGS)
    return build_key(request.topic, TAG_MARK + tags) if tags else None
