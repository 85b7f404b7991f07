# SPDX-License-Identifier: Apache-2.0
"""Commands of findings that write something new, each into a directory of its own.

A finding prints its command alone: it does not know what those before it will have written when it
is run. `segproof salvage` refuses a directory that has another partition of the same name, and
`segproof rebuild` one that is not empty. Where partitions lie, both refuse a new store, and a
partition is not saved where a store lies.
"""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from segproof.commands import quoted_path
from segproof.files import REAL_FILES, status_of
from segproof.findings import Finding
from segproof.reading.file_names import read_partition_name

COMMAND = re.compile(r"`segproof (?:salvage|rebuild) [^`]+ --out [^`]+`")
NUMBERED = re.compile(r"(.*?)(?:-[0-9]+)?")
ALL = ""
"""Stands for all partitions of a data directory."""


class OwnOutputs:
    """Remembers what the commands of one report write."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, str]] = {}
        """By new directory: the partitions that commands put there, and whence they come."""
        self._with_stores: set[str] = set()
        """The new directories among them to which stores go, and no partition."""

    def of(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings, in their hints no new directory that an earlier one takes."""
        for one in findings:
            hint = COMMAND.sub(self._own, one.hint)
            yield one if hint == one.hint else replace(one, hint=hint)

    def _own(self, command: re.Match[str]) -> str:
        try:
            words = shlex.split(command[0].strip("`"))
        except ValueError:
            return command[0]
        at = words.index("--out") + 1
        verb, source, out = words[1], posixpath.realpath(words[2]), words[at]
        folder, name = out, posixpath.basename(source)
        if verb == "rebuild" or posixpath.basename(out) == name:
            folder = posixpath.dirname(out)
        elif read_partition_name(name) is None:
            name = ALL
        is_store = folder != out and (verb == "salvage" or read_partition_name(name) is None)
        free = self._free(folder, name, source, is_store=is_store)
        self._taken.setdefault(free, {})[name] = source
        if is_store:
            self._with_stores.add(free)
        if free == folder:
            return command[0]
        new = free if folder == out else posixpath.join(free, posixpath.basename(out))
        head, _, tail = command[0].rpartition(f" --out {quoted_path(out)}")
        return f"{head} --out {quoted_path(new)}{tail}"

    def _free(self, folder: str, name: str, source: str, *, is_store: bool) -> str:
        """Return the first directory to which nothing goes that is refused beside this source."""
        if self._has_room(folder, name, source, is_store=is_store):
            return folder
        match = NUMBERED.fullmatch(folder)
        base = folder if match is None else match[1]
        for number in count(2):
            new = f"{base}-{number}"
            if new in self._taken:
                if self._has_room(new, name, source, is_store=is_store):
                    return new
            elif status_of(REAL_FILES, new) is None:
                return new
        raise AssertionError

    def _has_room(self, folder: str, name: str, source: str, *, is_store: bool) -> bool:
        taken = self._taken.get(folder, {})
        if taken and is_store is not (folder in self._with_stores):
            return False
        if name == ALL:
            return all(known == source for known in taken.values())
        whole = taken.get(ALL)
        return whole is None and taken.get(name, source) == source
