# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with a whole store."""

from segproof_model.language.behaviours import Behaviour, override
from segproof_model.rocketmq.broker import message_store
from segproof_model.rocketmq.format.message import Message


class UnloadedStoreIsNotRecovered(Behaviour):
    """A store does not recover where its index could not be loaded."""

    laws = ("RMQSVC-2",)
    of_segproof = True

    class MessageStore(message_store.MessageStore):
        """The store."""

        @override
        def load_and_recover(self) -> bool:
            loaded = self.load()
            if loaded:
                self.recover()
            return loaded


class MessageAtEndOfQueuesIsTold(Behaviour):
    """Recovery after a clean exit tells the index also of the message that begins where the queues
    end.
    """

    laws = ("RMQLOG-5",)
    of_segproof = True

    class MessageStore(message_store.MessageStore):
        """The store."""

        @override
        def recover_normally(self) -> None:
            reached = self.max_physic_offset()
            self.dispatch_from(self.start_of_recovery(reached), reached)


class RecoveryBeginsAtIndexEnd(Behaviour):
    """With `messageIndexSafe`, or if load deleted an index file that the checkpoint covers, a
    recovery begins where the loaded index files end, and after an abnormal exit it goes back over
    all files of the log.
    """

    laws = ("RMQLOG-5",)
    of_segproof = True

    class MessageStore(message_store.MessageStore):
        """The store."""

        @property
        @override
        def is_index_safe(self) -> bool:
            return super().is_index_safe or self.index_service.is_shortened

        @override
        def files_looked_at(self, reached: int | None) -> list[int]:
            is_far = reached is None and self.is_index_safe
            return self.log_starts()[::-1] if is_far else super().files_looked_at(reached)

        @override
        def index_has(self, message: Message) -> bool:
            if not self.is_index_safe:
                return True
            ends = [file.end_phy_offset for file in self.index_service.index_files]
            return bool(ends) and message.physical_offset <= ends[-1]
