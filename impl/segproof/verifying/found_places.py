# SPDX-License-Identifier: Apache-2.0
"""Where a small file belongs that lost its name: the partitions near it that lack such a file.

Near are the partitions beside the file, or beside lost+found, and those one folder below that, as a
data directory lies on its disk.

Laws: DISK-45.
"""

import posixpath
from functools import cached_property

from segproof.counts import plural
from segproof.files import Files
from segproof.hints import Hint, changes, reads, writes
from segproof.inventory.loose import LOST_AND_FOUND
from segproof.inventory.small_files import topic_id_of
from segproof.reading.file_contents import Content, Kind
from segproof.reading.file_names import EPOCHS, METADATA, METADATA_TOPIC, read_partition_name
from segproof.reading.folder_names import names_of

FOLDERS_MAX = 256
PARTITIONS_MAX = 4096
NAMED_MAX = 3
"""At most this many partitions are named to which a file may belong."""
REMADE = reads("nothing: it is made new from its log")
OF_SNAPSHOT = writes(
    "nothing: a salvage makes the snapshots of a partition new from its log. The file belongs to"
    " the partition with batches of these producers, as `segproof dump` of its logs shows them,"
    " under the offset up to which it counts them"
)
OF_OFFSETS = reads(
    "nothing: the broker writes its checkpoints of offsets again. Give this file no name: which of"
    " the four it is, nothing tells"
)
OF_NODE = reads(
    "compare it with the data directories of this broker: the one that lacks its meta.properties"
    " needs a copy of this file, if the ids are its own, as the log of the cluster's metadata and"
    " its other directories show. No broker starts with a directory of partitions without it"
)
OF_VOTE = reads(
    "compare it with the folder __cluster_metadata-0 of this node: if that lacks its quorum-state"
    " (DISK-67), a copy of this file belongs there, unless the node has started since"
)
OF_STORE = writes(
    "compare it with the store that lacks such a file, as `segproof verify` of the store says; a"
    " salvage makes checkpoint, queues and index new from the commit log, and no file of config"
)
_FIXED = {
    Kind.REMADE: REMADE,
    Kind.SNAPSHOT: OF_SNAPSHOT,
    Kind.OFFSETS: OF_OFFSETS,
    Kind.NODE: OF_NODE,
    Kind.VOTE: OF_VOTE,
    Kind.OF_STORE: OF_STORE,
}


class FoundPlaces:
    """The partitions near the files of one folder, listed when the first of them is asked for."""

    def __init__(self, folder: str, files: Files) -> None:
        self._files = files
        self._around = folder
        if posixpath.basename(posixpath.normpath(folder)) == LOST_AND_FOUND:
            self._around = posixpath.dirname(posixpath.normpath(folder)) or "."

    def hint(self, content: Content) -> Hint:
        """Return what to do with a small file, as its content tells."""
        if content.kind is Kind.TOPIC_ID:
            return self._of_topic_id(content.topic_id)
        if content.kind is Kind.EPOCHS:
            lacking = [path for path, names in self._partitions.items() if EPOCHS not in names]
            near = f". Near it {_named(lacking)} {_lack(lacking)}" if lacking else ""
            return writes(
                "nothing: a salvage makes this file new from the batches. It belongs to the"
                " partition whose batches have these leader epochs from these offsets on, as"
                f" `segproof dump` of its logs shows them{near}"
            )
        return _FIXED[content.kind]

    def _of_topic_id(self, topic_id: str) -> Hint:
        lacking = [path for path, names in self._partitions.items() if METADATA not in names]
        topic = self._topics.get(topic_id)
        of_topic = [path for path in lacking if _topic_of(path) == topic]
        where = "the folder of the partition that lacks this file: DISK-49 and DISK-71 of verify of"
        where += " the data directory name it"
        if of_topic:
            where = f"{_named(of_topic)}: the topic {topic} has this id, and {_lack(of_topic)}"
        elif topic is None and lacking:
            where = f"the partition of the topic with this id: near it {_named(lacking)}"
            where += f" {_lack(lacking)}"
        return changes(
            f"put a copy of it, under the name {METADATA}, into {where}",
            only_if=f"`kafka-topics.sh --describe` shows the id {topic_id} for the topic of that"
            " partition, and it was not deleted and created again since",
            if_wrong="the broker takes the log for that of another topic and sets it aside under a"
            " name that ends in -stray",
            copy_step="stop the broker, and copy the partition's folder away",
        )

    @cached_property
    def _partitions(self) -> dict[str, frozenset[str]]:
        """The partitions in use, each with its files."""
        own = names_of(self._around, self._files)
        folders = [posixpath.join(self._around, one) for one in own[:FOLDERS_MAX]]
        paths = [posixpath.join(self._around, one) for one in own if _is_in_use(one)]
        for folder in folders:
            name = posixpath.basename(folder)
            if name != LOST_AND_FOUND and not _is_in_use(name):
                inner = names_of(folder, self._files)
                paths += [posixpath.join(folder, one) for one in inner if _is_in_use(one)]
        return {
            path: frozenset(names_of(path, self._files)) for path in sorted(paths)[:PARTITIONS_MAX]
        }

    @cached_property
    def _topics(self) -> dict[str, str]:
        """The topic of each id that a partition near the files has."""
        found = {}
        for path, names in self._partitions.items():
            if METADATA in names:
                known = topic_id_of(posixpath.join(path, METADATA), self._files)
                if known is not None:
                    found[known] = _topic_of(path)
        return found


def _is_in_use(name: str) -> bool:
    known = read_partition_name(name)
    return known is not None and not known.state and known.topic != METADATA_TOPIC


def _topic_of(path: str) -> str:
    known = read_partition_name(posixpath.basename(path))
    return "" if known is None else known.topic


def _named(paths: list[str]) -> str:
    more = len(paths) - NAMED_MAX
    return ", ".join(paths[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _lack(paths: list[str]) -> str:
    return "it has none" if len(paths) == 1 else f"{plural(len(paths), 'partition')} lack one"
