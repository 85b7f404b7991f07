# SPDX-License-Identifier: Apache-2.0
"""The ids in a `meta.properties`: which node a log directory belongs to, and which one it is.

Upstream: Kafka 4.4.0: MetaProperties, MetaPropertiesEnsemble, Uuid; java.util.Properties.
"""

import base64
import posixpath
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from segproof.errors import NumberFormatError
from segproof.files import Files
from segproof.integers import parse_int
from segproof.reading.file_names import BROKER_FILE

NODE_FILE_BYTES = 1 << 20
"""A larger file is not read: the largest known have some hundred bytes."""
RESERVED_TO = 100
"""A start ends at a directory.id that is a lower number."""
NO_NODE = -1
"""A file of version 0 may have no number of a node, until the broker has made itself one."""
UUID = re.compile("[A-Za-z0-9_-]{22}(==)?")
"""16 bytes in base64 for URLs; Kafka ignores the last four bits."""
_CONTINUED = re.compile(r"(?<!\\)(\\\\)*\\\Z")
_PAIR = re.compile(r"((?:[^\\ \t\f:=]|\\.)*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u([0-9a-fA-F]{4})?|.)?", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Broker:
    """Whose log directory it is, as its `meta.properties` says."""

    cluster: str
    """The id of the cluster; empty if the file has none, as before 0.10.1."""
    node: int
    """`node.id`, or `broker.id` in a file of version 0; NO_NODE if such a file has none."""
    directory: str
    """The id of the directory, different in each of a broker; empty before 3.7."""
    is_kraft: bool
    """Whether the file is of version 1, which brokers with KRaft write."""


def read_broker(directory: str, files: Files) -> Broker | None:
    """Return whose a log directory is; None if Kafka can't read it in `meta.properties`."""
    try:
        with closing(files.open(posixpath.join(directory, BROKER_FILE))) as file:
            found = broker_in(file.pread(NODE_FILE_BYTES, 0))
    except OSError:
        return None
    return found if isinstance(found, Broker) else None


def broker_in(data: bytes) -> Broker | str:
    """Return whose directory a `meta.properties` is of; or, in words, why Kafka can't tell."""
    if not data.strip(b"\0 \t\r\n"):
        return "the file is zeros" if data.strip() else "the file is empty"
    told = properties_in(data)
    if told is None:
        return r"a \u in it is not followed by four hexadecimal digits"
    version = _number(told.get("version", "0").strip())
    if version not in (0, 1):
        return f"its version is {told['version'][:20]!r}"
    directory = told.get("directory.id")
    problem = None if directory is None else _problem_of_directory(directory)
    if problem:
        return problem
    key = "node.id" if version else "broker.id"
    lacking = [name for name in (key, "cluster.id") if not told.get(name)]
    if version and lacking:
        return f"it has no {lacking[0]}"
    if len(lacking) == 2:
        return "it has neither broker.id nor cluster.id"
    node = _number(told[key]) if key in told else NO_NODE
    if node is None or (key in told and node < 0):
        return f"its {key} is not a number"
    name = base64.urlsafe_b64encode(_bytes_of(directory)) if directory else b""
    return Broker(
        told.get("cluster.id", ""), node, name.decode("ascii").rstrip("="), is_kraft=version == 1
    )


def _problem_of_directory(directory: str) -> str:
    """Return what is wrong with a `directory.id`; empty if nothing is."""
    if not UUID.fullmatch(directory):
        return "its directory.id is not a UUID in base64"
    data = _bytes_of(directory)
    if not any(data[:8]) and int.from_bytes(data[8:], signed=True) < RESERVED_TO:
        return f"its directory.id {directory} is reserved"
    return ""


def _bytes_of(directory: str) -> bytes:
    return base64.urlsafe_b64decode(directory[:22] + "==")


def _number(text: str) -> int | None:
    """Return a number of 32 bits as Java reads it, or None."""
    try:
        return parse_int(text, 32)
    except NumberFormatError:
        return None


def properties_in(data: bytes) -> dict[str, str] | None:
    r"""Return what a file of Java's properties says; None for a `\u` without four digits.

    The last line of a key counts. Blanks at the end of a value belong to it.
    """
    told: dict[str, str] = {}
    for line in _lines(data.decode("latin-1")):
        match = _PAIR.fullmatch(line)
        assert match is not None
        key, value = map(_unescaped, match.groups())
        if key is None or value is None:
            return None
        told[key] = value
    return told


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that are no comments, each with those that a backslash joins to it."""
    begun = ""
    for one in re.split(r"\r\n|[\r\n]", text):
        line = one.lstrip(" \t\f")
        if not begun and (not line or line[0] in "#!"):
            continue
        begun += line
        if _CONTINUED.search(line):
            begun = begun[:-1]
        else:
            yield begun
            begun = ""
    if begun:
        yield begun


def _unescaped(text: str) -> str | None:
    r"""Return a key or value without its escapes; None for a `\u` without four digits."""
    parts: list[str] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[at : match.start()])
        at = match.end()
        letter = match[1] or ""
        if letter == "u":
            return None
        parts.append(chr(int(match[2], 16)) if match[2] else _LETTERS.get(letter, letter))
    return "".join(parts) + text[at:]
