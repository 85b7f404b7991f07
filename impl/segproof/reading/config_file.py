# SPDX-License-Identifier: Apache-2.0
"""The JSON files in the folder `config` of a store: topics, consumer offsets, subscription groups.

Releases write them with two libraries. Both read more than JSON: integers as keys, single quotes, a
comma before a closing bracket, names without quotes, comments, zeros around the object, and one
byte order mark before it. What one of them reads is whole here. So a file that is called broken is
broken for every release.

Upstream: RocketMQ 4.9.8 and 5.5.1: ConfigManager.load, RemotingSerializable.fromJson.
Layout: `config/NAME.json`, and `config/NAME.json.bak`, the state before the last write.
Laws: RMQDISK-43.
"""

import json
import re
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

from segproof.files import NOT_REGULAR, Files, status_of

__all__ = [
    "BACKUP_SUFFIX",
    "CONFIG",
    "CONFIG_BYTES_MAX",
    "TEXT",
    "begin_of_json",
    "config_files_in",
    "is_known_config",
    "is_null",
    "json_fault",
]

CONFIG: Final = "config"
BACKUP_SUFFIX: Final = ".bak"
CONFIG_BYTES_MAX: Final = 64 << 20
"""A larger file is not read into memory. Topics of this size would be more than 100 000."""
JSON_SUFFIX: Final = ".json"
STATES: Final = frozenset(
    {
        "topics.json", "consumerOffset.json", "lmqConsumerOffset.json", "delayOffset.json",
        "subscriptionGroup.json", "consumerFilter.json", "topicQueueMapping.json",
        "consumerOrderInfo.json", "messageRequestMode.json",
    }
)  # fmt: skip
"""The files of JSON that a broker of 4.7.0 to 5.5.1 keeps here, but for metrics."""
METRICS: Final = frozenset({"timermetrics", "transactionMetrics"})
"""Files of JSON whose names do not say so."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""What an editor may put before the text."""
_BLANK: Final = bytes(range(0x21))

_SPACE = re.compile(rb"(?:[\x00-\x20]++|//[^\n]*+|/\*.*?\*/)*", re.DOTALL)
TEXT: Final = rb"""\"(?:[^"\\]++|\\.)*+\"|'(?:[^'\\]++|\\.)*+'"""
"""A pattern of a text in quotes; a dot in it is any byte."""
_TEXT = re.compile(TEXT, re.DOTALL)
_NUMBER = re.compile(rb"[-+]?[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?[BSLFD]?")
_NAME = re.compile(rb"[A-Za-z_$\x80-\xff][\w$.\x80-\xff-]*+")
_WORD = re.compile(rb"(?:true|false|null|NaN)\b")
_SCALARS = (_TEXT, _NUMBER, _WORD)
_KEYS = (_TEXT, _NUMBER, _NAME)
_CLOSING = {ord("{"): ord("}"), ord("["): ord("]")}
WITHOUT = {
    "topics.json": "without its topics: a producer or consumer of a topic finds no route, until the"
    " topic is created again with the same number of queues",
    "consumerOffset.json": "without consumer offsets: each group begins again where its"
    " consumeFromWhere says, so that messages are consumed twice or passed over",
    "lmqConsumerOffset.json": "without the consumer offsets of light queues: messages are consumed"
    " twice or passed over",
    "delayOffset.json": "without the offsets of delayed messages: each level begins again at its"
    " oldest message, so that those in the log are delivered twice",
    "subscriptionGroup.json": "without its subscription groups: their retry settings are gone, and"
    " so are the groups, if autoCreateSubscriptionGroup is off",
    "consumerFilter.json": "without its SQL filters: the bit maps of filters are made again as"
    " consumers register",
    "topicQueueMapping.json": "without the mapping of static topics: their logical queues lead"
    " nowhere",
    "consumerOrderInfo.json": "without the state of consumers in order: messages in flight are"
    " delivered again",
    "messageRequestMode.json": "without the request modes of its groups: they are pull again",
    "timermetrics": "without the counts of pending timers, which are only shown",
    "transactionMetrics": "without the counts of open transactions, which are only shown",
}
"""How a broker starts if it can read neither a file nor its backup."""
WRITTEN_SUFFIX = ".tmp"
TOO_LARGE = f"it has more than {CONFIG_BYTES_MAX} bytes"


def config_files_in(names: list[str]) -> list[str]:
    """Return the names of the files of JSON in `config`, each once and without `.bak`, sorted."""
    own = {name.removesuffix(BACKUP_SUFFIX) for name in names}
    return sorted(name for name in own if name.endswith(JSON_SUFFIX) or name in METRICS)


def is_known_config(name: str) -> bool:
    """Return whether a file of this name is one of a broker's `config`, or the backup of one."""
    return name.removesuffix(BACKUP_SUFFIX) in STATES | METRICS


def json_fault(data: bytes) -> int | None:
    """Return the byte at which a file stops to be one JSON object, or null; None if it is one."""
    begin = begin_of_json(data)
    with suppress(ValueError, RecursionError):
        found = json.loads(data[begin:].strip(b"\x00 \t\r\n").decode())
        return None if found is None or isinstance(found, dict) else 0
    return _Reader(data, begin).fault()


def is_null(data: bytes) -> bool:
    """Return whether a file is the word null, which a broker reads as no state at all."""
    return data[begin_of_json(data) :].strip(_BLANK) == b"null"


def begin_of_json(data: bytes) -> int:
    """Return the position after a byte order mark; 0 without one."""
    blank = len(data) - len(data.lstrip(_BLANK))
    has_mark = data.startswith(BYTE_ORDER_MARK, blank)
    return blank + len(BYTE_ORDER_MARK) if has_mark else 0


class _Reader:
    """Reads one file once, without recursion: a damaged file may open many brackets."""

    def __init__(self, data: bytes, begin: int) -> None:
        self._data = data
        self._at = begin

    def fault(self) -> int | None:
        """Return the byte at which the file stops to be one object."""
        self._pass_space()
        begin = self._at
        is_object = self._data[begin : begin + 1] == b"{"
        if not is_object and _WORD.match(self._data, begin) is None:
            return begin if begin < len(self._data) else 0
        if not (self._container() if is_object else self._one_of((_WORD,))):
            return self._at
        self._pass_space()
        return None if self._at == len(self._data) else self._at

    def _pass_space(self) -> None:
        found = _SPACE.match(self._data, self._at)
        self._at = found.end() if found is not None else self._at

    def _one_of(self, patterns: tuple[re.Pattern[bytes], ...]) -> bool:
        """Pass one of the patterns; return whether one is there."""
        for pattern in patterns:
            found = pattern.match(self._data, self._at)
            if found is not None:
                self._at = found.end()
                return True
        return False

    def _next(self) -> int:
        """Return the next byte that is not space; -1 at the end."""
        self._pass_space()
        return self._data[self._at] if self._at < len(self._data) else -1

    def _container(self) -> bool:
        """Pass an object with all that it contains; return whether it is whole."""
        opened = [self._next()]
        self._at += 1
        while opened:
            if self._next() == _CLOSING[opened[-1]]:
                opened.pop()
                self._at += 1
            else:
                if opened[-1] == ord("{") and not self._key():
                    return False
                following = self._next()
                if following in _CLOSING:
                    opened.append(following)
                    self._at += 1
                    continue
                if not self._one_of(_SCALARS):
                    return False
            if not opened:
                break
            following = self._next()
            if following == ord(","):
                self._at += 1
            elif following != _CLOSING[opened[-1]]:
                return False
        return True

    def _key(self) -> bool:
        """Pass a key and its colon; return whether they are there."""
        if not self._one_of(_KEYS) or self._next() != ord(":"):
            return False
        self._at += 1
        return True


class ConfigState(Enum):
    """What a file is."""

    ABSENT = "absent"
    EMPTY = "empty"
    WHOLE = "whole"
    BROKEN = "broken"
    OTHER_KIND = "no regular file"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One file of JSON in `config`, as it was found."""

    path: str
    state: ConfigState
    fault: int = 0
    """The byte at which it stops to be JSON, if it is broken."""
    words: str = ""
    """What is wrong with it; empty if nothing is."""
    is_null: bool = False
    """Whether it is whole and says nothing."""

    @property
    def is_whole(self) -> bool:
        """Whether a broker reads it."""
        return self.state is ConfigState.WHOLE

    @property
    def is_there(self) -> bool:
        """Whether the file exists."""
        return self.state is not ConfigState.ABSENT

    @property
    def is_broken(self) -> bool:
        """Whether the file has bytes, and a broker can't read them."""
        return self.state is ConfigState.BROKEN

    @property
    def ends_a_start(self) -> bool:
        """Whether a broker's start fails if it reads this as the second of the two files."""
        return self.state in (ConfigState.BROKEN, ConfigState.OTHER_KIND)


def read_config_file(path: str, files: Files) -> ConfigFile:
    """Return what a file is. Raises: OSError."""
    status = status_of(files, path)
    if status is None:
        return ConfigFile(path, ConfigState.ABSENT)
    if not status.is_regular:
        return ConfigFile(path, ConfigState.OTHER_KIND, words=f"it is {NOT_REGULAR}")
    if status.size_bytes > CONFIG_BYTES_MAX:
        return ConfigFile(path, ConfigState.UNREAD, words=TOO_LARGE)
    with closing(files.open(path)) as file:
        data = file.pread(status.size_bytes, 0)
    if not data:
        return ConfigFile(path, ConfigState.EMPTY, words="it has 0 bytes")
    fault = json_fault(data)
    if fault is None:
        return ConfigFile(path, ConfigState.WHOLE, is_null=is_null(data))
    if not data.strip(b"\0"):
        return ConfigFile(path, ConfigState.BROKEN, 0, f"all its {len(data)} bytes are zero")
    words = f"it is cut: its JSON ends at byte {fault}, before the last bracket is closed"
    if data[fault:].strip(b"\0"):
        words = f"it is not JSON from byte {fault} on"
    return ConfigFile(path, ConfigState.BROKEN, fault, words)


def without(name: str) -> str:
    """Return how a broker starts if it can read neither this file nor its backup."""
    return WITHOUT.get(name, "without what this file says")
