# SPDX-License-Identifier: Apache-2.0
"""The JSON that a broker reads from its folder `config`, which is more than the standard allows.

Integers may be keys, texts may have single quotes, a comma may stand before a closing bracket, and
zeros and comments may stand between all tokens. One byte order mark may stand before the first.
"""

import json
import re
from contextlib import suppress

CONFIG_NAME = re.compile(r"config/(?:[^/]+\.json|timermetrics|transactionMetrics)(?:\.bak)?")
"""Files of the store that are such JSON."""
TOKEN = re.compile(
    r"""(?P<space>[\x00-\x20]+|//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?[BSLFD]?)
    |(?P<name>[A-Za-z_$\x80-\xff][\w$.\x80-\xff-]*)
    |(?P<mark>[][{}:,])""",
    re.DOTALL | re.VERBOSE,
)
MARK = re.compile(r"[\x00-\x20]*\xef\xbb\xbf")
WORDS = {"true", "false", "null", "NaN"}


def is_config(data: bytes) -> bool:
    """Return whether the bytes are one object, or the word null.

    >>> is_config(b'{"T@g":{0:11}}'), is_config(b'{"T@g":{'), is_config(bytes(9))
    (True, False, False)
    """
    text = data.decode("latin-1")
    mark = MARK.match(text)
    tokens = _tokens(text[mark.end() :] if mark else text)
    if tokens is None or not tokens:
        return False
    return tokens == ["null"] or (tokens[0] == "{" and _after_value(tokens, 0) == len(tokens))


def _tokens(text: str) -> list[str] | None:
    """Return the tokens of a text, without space; None if a part of it is no token."""
    found, position = [], 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            return None
        if match["space"] is None:
            found.append(match[0])
        position = match.end()
    return found


def _after_value(tokens: list[str], at: int) -> int:
    """Return the number of the token after a value; -1 without a value."""
    token = tokens[at] if at < len(tokens) else "}"
    if token not in "{[":
        is_scalar = token in WORDS or token[0] in "\"'+-0123456789"
        return at + 1 if is_scalar else -1
    closing, at = {"{": "}", "[": "]"}[token], at + 1
    while at < len(tokens) and tokens[at] != closing:
        if closing == "}":
            if tokens[at] in "{}[]:," or tokens[at + 1 : at + 2] != [":"]:
                return -1
            at += 2
        at = _after_value(tokens, at)
        if at < 0 or at >= len(tokens) or tokens[at] not in (",", closing):
            return -1
        at += tokens[at] == ","
    return at + 1 if at < len(tokens) else -1


def read_config(data: bytes) -> object:
    """Return the object that the bytes are, with texts for keys and numbers; None without one.

    >>> read_config(b"{'T@g':{0:11}}")
    {'T@g': {'0': '11'}}
    """
    if not is_config(data):
        return None
    text = data.decode("latin-1")
    mark = MARK.match(text)
    return _value(_tokens(text[mark.end() :] if mark else text) or [])


def _value(tokens: list[str]) -> object:
    """Remove the tokens of one value from the front, and return it."""
    token = tokens.pop(0)
    if token == "{":
        found = {}
        while tokens[0] != "}":
            key = _scalar(tokens.pop(0))
            tokens.pop(0)
            found[key] = _value(tokens)
            del tokens[: tokens[0] == ","]
        tokens.pop(0)
        return found
    if token == "[":
        items = []
        while tokens[0] != "]":
            items.append(_value(tokens))
            del tokens[: tokens[0] == ","]
        tokens.pop(0)
        return items
    return _scalar(token)


def _scalar(token: str) -> str:
    """Return what a token says, without its quotes."""
    text = token.encode("latin-1").decode(errors="replace")
    if text[0] == '"' and "\\" in text:
        with suppress(ValueError):
            return str(json.loads(text))
    return text[1:-1] if text[0] in "\"'" else text
