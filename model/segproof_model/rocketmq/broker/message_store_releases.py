# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with a whole store, newest first.

Not covered: in 4.3.2 a file of the log that is not empty and has another length, which it passes
    over with all behind it.
"""

from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import int32_at
from segproof_model.rocketmq.broker import message_store
from segproof_model.rocketmq.format.message import Message


def least_time(store: message_store.MessageStore) -> int:
    """Return the time up to which the parts that recovery asks are durable."""
    checkpoint = store.store_checkpoint
    return checkpoint.min_timestamp_index if store.is_index_safe else checkpoint.min_timestamp


class LeastTimeSpeaksForQueues(Behaviour):
    """Where each part is asked after a kill, the queues are as far as the least time of the
    checkpoint, not as far as it says of them alone.
    """

    laws = ("RMQLOG-5",)
    releases = up_to("5.4.0")

    class MessageStore(message_store.MessageStore):
        """The store."""

        @override
        def queues_have(self, message: Message, reached: int | None) -> bool:
            if reached is not None:
                return super().queues_have(message, reached)
            return message.store_timestamp <= least_time(self)


class OneTimeDecidesRecovery(Behaviour):
    """One time of the checkpoint, not one for the queues and one for the index, says where recovery
    begins, which goes back over all files.
    """

    laws = ("RMQLOG-5",)
    releases = up_to("5.3.3")

    class MessageStore(message_store.MessageStore):
        """The store."""

        recovered_files = None

        @override
        def is_matched(self, start: int, reached: int | None) -> bool:
            if reached is not None:
                return start <= reached
            magic = int32_at(self.commit_log.mapped(start).ljust(8, b"\0"), 4)
            time = self.commit_log.pickup_store_timestamp(start, 76)
            return magic in self.kind(Message).magics and time != 0 and time <= least_time(self)


class NormalRecoveryTellsNothing(Behaviour):
    """Recovery after a clean exit tells the index of nothing."""

    laws = ("RMQLOG-5",)
    releases = up_to("5.1.4")

    class MessageStore(message_store.MessageStore):
        """The store."""

        @override
        def recover_normally(self) -> None:
            pass


class LoadedIndexIsNotAsked(Behaviour):
    """A store does not stop where its index service could not be loaded."""

    laws = ("RMQSVC-2",)
    releases = up_to("5.0.0")

    class MessageStore(message_store.MessageStore):
        """The store."""

        @override
        def load(self) -> bool:
            super().load()
            return self.log_is_whole


class EmptyLogFileIsRefused(Behaviour):
    """A store with an empty last file of its log can't be loaded."""

    laws = ("RMQLOG-3",)
    releases = up_to("5.0.0", since="4.7.0")

    class MessageStore(message_store.MessageStore):
        """The store."""

        @override
        def log_starts(self) -> list[int]:
            return self.commit_log.starts()


class LogIsReadOnFromQueues(Behaviour):
    """A store that was recovered after a clean exit reads the log on from where its queues end, and
    tells the index of what it reads.
    """

    laws = ("RMQLOG-5",)
    releases = up_to("4.9.8", since="4.7.0")

    class MessageStore(message_store.MessageStore):
        """The store."""

        @override
        def recover_normally(self) -> None:
            super().recover_normally()
            self.dispatch_from(max(self.max_physic_offset(), self.commit_log.min_offset))
