# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with a message of the commit log."""

from segproof_model.language.behaviours import Behaviour, override
from segproof_model.rocketmq.format import message


class PropertiesNeedNoNumbers(Behaviour):
    """No property has to be a number: neither a delay, nor the base and the count of a batch."""

    laws = ("RMQLOG-3",)
    of_segproof = True

    class Message(message.Message):
        """A message."""

        @override
        def has_delay_level(self) -> bool:
            return True

        @override
        def has_batch(self) -> bool:
            return True
