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
from contextlib import suppress
from typing import Final

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
