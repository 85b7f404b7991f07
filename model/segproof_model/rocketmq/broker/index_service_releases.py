# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with a store's index and its checkpoint, newest first."""

from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse
from segproof_model.rocketmq.broker import index_service, store_checkpoint
from segproof_model.rocketmq.broker.index_service import ROLLBACK
from segproof_model.rocketmq.format.key_hash import build_key
from segproof_model.rocketmq.format.message import DispatchRequest

COMMIT = 8
"""The transaction bits of the end of a transaction that is committed."""


class CheckpointHasFiveFields(Behaviour):
    """A store checkpoint lacks the offset in the log that the queues have reached."""

    laws = ("RMQCKPT-1", "RMQCKPT-2")
    releases = up_to("5.4.0")

    class StoreCheckpoint(store_checkpoint.StoreCheckpoint):
        """The checkpoint."""

        field_count = 5


class TypedQueryMakesItsList(Behaviour):
    """A query with a type of key makes its list before it cuts the wanted number."""

    laws = ("RMQSVC-20",)
    releases = up_to("5.4.0", since="5.4.0")

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def check_wanted(self, max_num: int, index_type: str | None) -> None:
            super().check_wanted(max_num, index_type)
            if max_num == INT32_MAX and index_type is not None:
                refuse(ErrorKind.OUT_OF_MEMORY)


class TagsAreNotIndexed(Behaviour):
    """A message has no entry under its topic and tags."""

    laws = ("RMQSVC-14",)
    releases = up_to("5.3.3")

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def keys_of(self, request: DispatchRequest) -> list[str]:
            return super().keys_of(request._replace(properties_map=None))

        @override
        def key_asked(self, topic: str | None, key: str | None, index_type: str | None) -> str:
            return build_key(topic, key)


class QueryMakesItsList(Behaviour):
    """Every query makes its list before it cuts the wanted number."""

    laws = ("RMQSVC-20",)
    releases = up_to("5.1.4")

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def check_wanted(self, max_num: int, index_type: str | None) -> None:
            super().check_wanted(max_num, index_type)
            if max_num == INT32_MAX:
                refuse(ErrorKind.OUT_OF_MEMORY)


class CheckpointHasFourFields(Behaviour):
    """A store checkpoint lacks the confirmed offset and what follows it."""

    laws = ("RMQCKPT-1", "RMQCKPT-2")
    releases = up_to("5.0.0")

    class StoreCheckpoint(store_checkpoint.StoreCheckpoint):
        """The checkpoint."""

        field_count = 4


class CheckpointHasThreeFields(Behaviour):
    """A store checkpoint lacks the master's flushed offset and what follows it."""

    laws = ("RMQCKPT-1", "RMQCKPT-2")
    releases = up_to("4.9.8")

    class StoreCheckpoint(store_checkpoint.StoreCheckpoint):
        """The checkpoint."""

        field_count = 3


class ShutdownDoesNothing(Behaviour):
    """Shutting the service down leaves its list, and its files open."""

    laws = ("RMQSVC-23",)
    releases = up_to("4.9.8")

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def shutdown(self) -> None:
            pass


class UniqueKeyIsNotIndexed(Behaviour):
    """A message has no entry under its topic and unique key."""

    laws = ("RMQSVC-14",)
    releases = up_to("3.2.6")

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def keys_of(self, request: DispatchRequest) -> list[str]:
            return super().keys_of(request._replace(uniq_key=None))


class StrangeNameEndsLoading(Behaviour):
    """Loading ends with the number-format error at a file whose name is no number."""

    laws = ("RMQSVC-2",)
    releases = up_to("3.2.6")

    class IndexService(index_service.IndexService):
        """The service."""

        passed_over = ()


class CommittedIsNotIndexed(Behaviour):
    """The end of a transaction that is committed is not indexed."""

    laws = ("RMQSVC-13",)
    releases = up_to("3.2.6")

    class IndexService(index_service.IndexService):
        """The service."""

        not_indexed = (COMMIT, ROLLBACK)
