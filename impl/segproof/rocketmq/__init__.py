# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's message-key index, the files it is made of, and what it is made new from.

One file of the index: `IndexFile`, `IndexEntry`, `IndexHeader`; the hash of its keys:
`index_key_hash`, `index_key_hash_many`, `hash_code`, `build_key`. All files of a store:
`IndexService`, with its `StoreCheckpoint`. What it is made from: `CommitLog`, `Message`,
`DispatchRequest`. A queue: `ConsumeQueue`. A whole store, which recovers and answers queries:
`MessageStore`.
"""

from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue, ConsumeQueueUnit
from segproof.rocketmq.index_file import IndexEntry, IndexFile
from segproof.rocketmq.index_header import IndexHeader
from segproof.rocketmq.index_service import IndexService, QueryOffsetResult
from segproof.rocketmq.key_hash import build_key, hash_code, index_key_hash, index_key_hash_many
from segproof.rocketmq.message import (
    CheckResult,
    DispatchRequest,
    Message,
    check_message_and_return_size,
    dispatch_request_of,
    encode_message,
    string_to_message_properties,
)
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig, QueryMessageResult
from segproof.rocketmq.reference_resource import ReferenceResource
from segproof.rocketmq.store_checkpoint import StoreCheckpoint

__all__ = [
    "CheckResult",
    "CommitLog",
    "ConsumeQueue",
    "ConsumeQueueUnit",
    "DispatchRequest",
    "IndexEntry",
    "IndexFile",
    "IndexHeader",
    "IndexService",
    "Message",
    "MessageStore",
    "MessageStoreConfig",
    "QueryMessageResult",
    "QueryOffsetResult",
    "ReferenceResource",
    "StoreCheckpoint",
    "build_key",
    "check_message_and_return_size",
    "dispatch_request_of",
    "encode_message",
    "hash_code",
    "index_key_hash",
    "index_key_hash_many",
    "string_to_message_properties",
]
