# SPDX-License-Identifier: Apache-2.0
"""The rule of each law that `verify` reports: its structure, its usual severity, and what to do.

A rule is declared in the module that reports the law. `segproof.verification.RULES` has all of
them. The laws themselves are stated and kept in the model.
"""

import posixpath
import re
from itertools import chain, count
from typing import NamedTuple

from segproof.commands import quoted_path
from segproof.files import REAL_FILES, status_of
from segproof.findings import Severity

COMMAND = re.compile(r"`segproof [^`]+`")
"""A command in a hint. In a finding it gets real paths: see `with_paths`."""
PLACEHOLDER = re.compile(r"\b(?:DIR2|DIR|STORE)\b")
BROKER_FILE = "meta.properties"
"""What a broker of Kafka keeps in each of its data directories."""
REBUILD = (
    "stop the broker and make the indexes new with `segproof rebuild DIR --out DIR2` (or"
    " `--in-place`), or remove the segment's .index file, for which a broker makes all its indexes"
    " new at its start (for a missing .timeindex it does not)"
)
RESTORE = (
    "copy the segment from another replica, or save what is sound with `segproof salvage DIR --out"
    " DIR2`: a broker that recovers the partition may cut the log here, and what follows is lost,"
    " sound or not"
)
REMAKE_TRANSACTIONS = (
    "stop the broker and make the index new with `segproof rebuild DIR --out DIR2` (or"
    " `--in-place`), or copy the segment from another replica"
)
REMAKE_SNAPSHOT = (
    "stop the broker and remove the snapshot, and .kafka_cleanshutdown if there is no other: its"
    " next start makes the state anew from an older one and the log"
)
REMAKE_INDEX = (
    "stop the broker and make the index new from the commit log with `segproof rebuild STORE --out"
    " DIR2` (or `--in-place`); messages that the log has lost are lost to the index too"
)
UNLESS_DAMAGED = (
    "; do not while a finding of the commit log (RMQDISK-24, 26, 27) tells messages behind damage:"
    " that start cuts the log there and throws them away"
)
MAKE_QUEUES_NEW = (
    "stop the broker, remove the folder consumequeue and the file checkpoint, make an empty file"
    " abort, and start it, 5.4.0 and later with commitLogRecoverMaxNum at the number of log"
    f" files: it makes queues and index new from the log{UNLESS_DAMAGED}"
)
COPY_LOG = (
    "copy the commit log from a replica, or save what is sound with `segproof salvage STORE --out"
    " DIR2` before a broker starts here; what is damaged can't be made new"
)


class Rule(NamedTuple):
    """How a broken law is shown."""

    structure: str
    severity: Severity
    hint: str
    is_deep: bool = False
    """Whether only a deep run checks it."""
    is_of_any_file: bool = False
    """Whether a finding names the structure of its file, and not that of the rule."""


def with_paths(hint: str, path: str, shown_by: str) -> str:
    """Return a hint whose commands name real places for DIR, STORE and DIR2.

    DIR is the directory of the file at `path`. STORE is the store that holds it: if its path does
    not tell, `shown_by`, the path whose verification shows the finding. DIR2 is a new directory;
    what the command makes is at saved/NAME or rebuilt/NAME, for a directory of this name.
    """

    def filled(command: re.Match[str]) -> str:
        is_salvage, is_store = "salvage" in command[0], "STORE" in command[0]
        place = (_store_of(path, shown_by) if is_store else posixpath.dirname(path)) or "."
        out = _new_place("saved" if is_salvage else "rebuilt", place)
        if is_store or not is_salvage:  # a salvage gives each partition a directory below --out
            out = posixpath.join(out, posixpath.basename(posixpath.abspath(place)))
        places = {"DIR": place, "STORE": place, "DIR2": out}
        return PLACEHOLDER.sub(lambda word: quoted_path(places[word[0]]), command[0])

    return COMMAND.sub(filled, hint)


def _store_of(path: str, shown_by: str) -> str:
    """Return the store that holds a file, as its path tells; else `shown_by`."""
    folder, name = posixpath.split(path)
    if name == "index":
        return folder
    above, own = posixpath.split(folder)
    if own in ("", ".", ".."):  # the path does not name the folder
        above = posixpath.join(above if own == "." else folder, "..")
        own = posixpath.basename(posixpath.realpath(folder))
    return above if own in ("index", "commitlog") else shown_by


def _new_place(name: str, place: str) -> str:
    """Return the path of a directory that is not there, for new files made of those at `place`.

    It lies in the working directory; above what is damaged, and above a data directory, where a
    broker refuses odd names, if the working directory is there.
    """
    try:
        here = folder = posixpath.realpath(".")
    except OSError:  # the working directory was removed
        return name
    damaged = posixpath.realpath(place)
    if posixpath.commonpath((damaged, folder)) == damaged:
        folder = posixpath.dirname(damaged)
    if status_of(REAL_FILES, posixpath.join(folder, BROKER_FILE)) is not None:
        folder = posixpath.dirname(folder)
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    paths = (posixpath.join(folder, one) for one in names)
    free = next(one for one in paths if status_of(REAL_FILES, one) is None)
    return posixpath.relpath(free, here)


DECLARED: dict[str, Rule] = {}
"""The rules of all modules that were imported so far."""


def declare(
    structure: str,
    severity: Severity,
    hint: str,
    *laws: str,
    is_deep: bool = False,
    is_of_any_file: bool = False,
) -> None:
    """Declare the rule of some laws, each once."""
    for law in laws:
        assert law not in DECLARED, f"{law} is declared twice"
        DECLARED[law] = Rule(structure, severity, hint, is_deep, is_of_any_file)
