# SPDX-License-Identifier: Apache-2.0
"""The rule of each law that `verify` reports: its structure, its usual severity, and what to do.

A rule is declared in the module that reports the law. `segproof.verification.RULES` has all of
them. The laws themselves are stated and kept in the model.
"""

import posixpath
import re
from typing import NamedTuple

from segproof.commands import copy_commands, quoted_path
from segproof.findings import Severity
from segproof.hints import Hint, changes, reads, writes
from segproof.reading.file_names import (
    NameKind,
    key_of,
    read_file_name,
    read_partition_name,
)
from segproof.reading.new_places import new_place, own_place

COMMAND = re.compile(r"`(segproof \w+|install) [^`]+`")
"""A command in a hint. In a finding it gets real paths: see `with_paths`."""
NEW_PLACES = {"segproof rebuild": "rebuilt", "segproof salvage": "saved"}
"""How the directory is called that a command makes."""
UNKNOWN_PARTITION = "TOPIC-0"
"""The name of a copy of a partition whose folder has no name of a partition."""
PLACEHOLDER = re.compile(r"\b(?:DIR2|DIR|STORE|FOLDER)\b")
REBUILD = writes(
    "make the indexes new in another directory with `segproof rebuild DIR --out DIR2`; the old"
    " files stay as they are"
)
SALVAGE = writes(
    "save the partition in another directory with `segproof salvage DIR --out DIR2`; the old files"
    " stay as they are"
)
RESTORE = writes(
    "save what is sound with `segproof salvage DIR --out DIR2` before a broker starts here, unless"
    " verify finds another replica of this partition sound: a broker that recovers the partition"
    " may cut the log here, and what follows is lost, sound or not"
)
WRITTEN_SO = reads(
    "its checksum is right, so a producer or a broker wrote it so: compare the batch with another"
    " replica, and look into it with `segproof dump`. No command makes it right, and"
    " none is needed to save it"
)
REMAKE_TRANSACTIONS = REBUILD
REMAKE_SNAPSHOT = SALVAGE.after(
    "a salvage makes snapshots that fit the log, without a broker's recovery, which may cut it: "
)
REMAKE_INDEX = writes(
    "make the index new from the commit log with `segproof rebuild STORE --out DIR2`; the old files"
    " stay as they are. Messages that the log has lost are lost to the index too"
)
REMAKE_LOST_INDEX = writes(
    "make the index new from the commit log with `segproof rebuild STORE --out DIR2`; the old files"
    " stay as they are. If no old file tells how many slots and entries the files have, add"
    " --hash-slots and --index-num: maxHashSlotNum and maxIndexNum of the broker"
)
REMAKE_STORE = writes(
    "save the store with `segproof salvage STORE --out DIR2`, which makes queues, index and"
    " checkpoint new from the commit log; the old files stay as they are"
)
COPY_LOG = writes(
    "save what is sound with `segproof salvage STORE --out DIR2` before a broker starts here,"
    " unless verify finds the commit log of a replica sound; what is damaged can't be made new"
)
TRIMMED = reads("nothing: closing or recovery trims the file")
MOVE_OUT = changes(
    "move it out, into a directory outside of the broker's data directories",
    only_if="`segproof dump` of it shows no batch that the logs here lack",
    if_wrong="its records are read by no broker",
    copy_step="stop the broker, whose next start fails with this file, and copy it away",
)


class Rule(NamedTuple):
    """How a broken law is shown."""

    structure: str
    severity: Severity
    hint: Hint
    is_deep: bool = False
    """Whether only a deep run checks it."""
    is_of_any_file: bool = False
    """Whether a finding names the structure of its file, and not that of the rule."""


def with_paths(hint: Hint, path: str, shown_by: str) -> str:
    """Return a hint whose commands name real places for DIR, STORE, FOLDER and DIR2.

    DIR is the directory of the file at `path`, and FOLDER is that path. STORE is the store that
    holds it: if its path does not tell, `shown_by`, the path whose verification shows the finding.
    DIR2 is a new directory; what a command makes is at saved/NAME or rebuilt/NAME, for a directory
    of this name. A copy gets a place of its own. In a command that makes nothing DIR2 stays: a
    person has chosen it. A salvage takes no folder that a broker has set aside, and none of
    another name than TOPIC-N: it is copied under its partition's name before. If nobody knows that
    name, the copy is called TOPIC-0.
    """

    def filled(command: re.Match[str]) -> str:
        verb, is_store, before = command[1], "STORE" in command[0], ""
        place = (_store_of(path, shown_by) if is_store else posixpath.dirname(path)) or "."
        places = {"DIR": place, "STORE": place, "FOLDER": path}
        name = _name_to_save(place, path) if verb == "segproof salvage" and not is_store else ""
        if name:
            places["DIR"] = posixpath.join(own_place("copied", place, place), name)
            before = f"{copy_commands(place, places['DIR'])}, "
        if verb == "install":
            places["DIR2"] = own_place("copied", place, place)
        elif verb in NEW_PLACES:
            out = new_place(NEW_PLACES[verb], place)
            # a salvage gives each partition a directory below --out
            if verb == "segproof rebuild" or is_store:
                out = posixpath.join(out, posixpath.basename(posixpath.abspath(place)))
            places["DIR2"] = out
        return before + PLACEHOLDER.sub(
            lambda word: quoted_path(places[word[0]]) if word[0] in places else word[0], command[0]
        )

    return COMMAND.sub(filled, str(hint))


def _name_to_save(place: str, path: str) -> str:
    """Return the name that a file's folder needs for a salvage; empty if its own will do."""
    real, named = map(posixpath.basename, (posixpath.realpath(place), posixpath.abspath(place)))
    known, by_link = read_partition_name(real), read_partition_name(named)
    if known is not None:
        return f"{known.topic}-{known.partition}" if known.state else ""
    if by_link is not None:
        return f"{by_link.topic}-{by_link.partition}"
    key = key_of(real)
    if read_file_name(posixpath.basename(path)).kind is not NameKind.SEGMENT:
        return ""
    return UNKNOWN_PARTITION if key is None else f"{key[0]}-{key[1]}"


def _store_of(path: str, shown_by: str) -> str:
    """Return the store that holds a file, as its path tells; else `shown_by`."""
    folder, name = posixpath.split(path)
    if name == "index":
        return folder
    if name in ("checkpoint", "abort"):
        return folder or "."
    above, own = posixpath.split(folder)
    if own in ("", ".", ".."):  # the path does not name the folder
        above = posixpath.join(above if own == "." else folder, "..")
        own = posixpath.basename(posixpath.realpath(folder))
    return above if own in ("index", "commitlog") else shown_by


DECLARED: dict[str, Rule] = {}
"""The rules of all modules that were imported so far."""


def declare(
    structure: str,
    severity: Severity,
    hint: Hint,
    *laws: str,
    is_deep: bool = False,
    is_of_any_file: bool = False,
) -> None:
    """Declare the rule of some laws, each once."""
    for law in laws:
        assert law not in DECLARED, f"{law} is declared twice"
        DECLARED[law] = Rule(structure, severity, hint, is_deep, is_of_any_file)
