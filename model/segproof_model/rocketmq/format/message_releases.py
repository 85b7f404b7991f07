# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with a message of the commit log, newest first.

Not covered: a size that memory would not hold.
"""

from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import wrap32
from segproof_model.rocketmq.format import message
from segproof_model.rocketmq.format.message import (
    MAGIC_V1,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
)


class RecordRoomWraps(Behaviour):
    """The size of a record is compared with the bytes that are left in 32 bits that wrap, so that
    the least sizes are too large, and other negative ones fit.
    """

    laws = ("RMQLOG-3",)
    releases = up_to("5.4.0")

    class Message(message.Message):
        """A message."""

        @staticmethod
        @override
        def has_room(total_size: int, left: int) -> bool:
            return wrap32(total_size - 4) <= left - 4


class RecordRoomIsNotAsked(Behaviour):
    """The size of a record is not compared with the bytes that are left before it is read."""

    laws = ("RMQLOG-3",)
    releases = up_to("5.1.4")

    class Message(message.Message):
        """A message."""

        @staticmethod
        @override
        def has_room(total_size: int, left: int) -> bool:
            return True


class SecondMagicIsUnknown(Behaviour):
    """The second magic of a record, with long topics, is a bad one."""

    laws = ("RMQLOG-1", "RMQLOG-3")
    releases = up_to("5.0.0")

    class Message(message.Message):
        """A message."""

        magics = (MAGIC_V1,)


class BatchNumbersAreNotRead(Behaviour):
    """The base and the count of a batch need not be numbers."""

    laws = ("RMQLOG-3",)
    releases = up_to("4.9.8")

    class Message(message.Message):
        """A message."""

        @override
        def has_batch(self) -> bool:
            return True


class PropertiesAreSplit(Behaviour):
    """A property is what splits into two parts, where the first may be empty, and empty parts at
    the end do not count.
    """

    laws = ("RMQLOG-4",)
    releases = up_to("4.7.1")

    class Message(message.Message):
        """A message."""

        @staticmethod
        @override
        def string_to_message_properties(text: str) -> dict[str, str]:
            found = {}
            for segment in text.split(PROPERTY_SEPARATOR):
                name, *values = segment.rstrip(NAME_VALUE_SEPARATOR).split(NAME_VALUE_SEPARATOR)
                if len(values) == 1:
                    found[name] = values[0]
            return found


class HostsAreShort(Behaviour):
    """A host of a record has 4 bytes of address, whatever the system flag says."""

    laws = ("RMQLOG-1", "RMQLOG-3")
    releases = up_to("4.3.2")

    class Message(message.Message):
        """A message."""

        @staticmethod
        @override
        def host_size(sys_flag: int, bit: int) -> int:
            return 8
