# SPDX-License-Identifier: Apache-2.0
"""The topic id of a saved partition: a broker with KRaft sets a partition without one aside.

Upstream: Kafka 4.4.0: PartitionMetadataFile, LogManager.isStrayKraftReplica.
Laws: DISK-49, DISK-50, META-2.
"""

import os
from collections.abc import Iterable
from contextlib import closing

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.findings import Finding
from segproof.inventory.partitions import Partition
from segproof.kafka.partition_metadata_file import read_partition_metadata
from segproof.reading.file_names import METADATA
from segproof.rebuilding.kept_files import COPY_BYTES

_STEP = (
    "write it into the new directory before a broker starts there, of the two lines `version: 0`"
    " and `topic_id: ID`, with the id that another partition of the topic has, or that"
    " `kafka-topics.sh --describe` shows"
)

_COMPARE = (
    "compare the id with the one that `kafka-topics.sh --describe` shows before a broker starts"
    " with the new directory, which has this file too, and write that one into it"
)


def bring_topic_id(partition: Partition, target: str, files: Files) -> list[str]:
    """Copy the topic's id durably; return in words why it can't be read, if it can't.

    A file that is missing is nothing to tell here: releases below 2.8 have none. Raises: OSError
    of the target.
    """
    path = partition.path(METADATA)
    try:
        with closing(files.open(path)) as file:
            data = file.pread(COPY_BYTES, 0)
        read_partition_metadata(data, source=path)
    except FileNotFoundError:
        return []
    except SegproofError as error:  # one of a checkpoint is an OSError too
        return [f"{path}: {error.message}; {_STEP}"]
    except OSError as error:
        return [f"{path}: {error.strerror or error}; {_STEP}"]
    with closing(files.open(os.path.join(target, METADATA), writable=True, create=True)) as file:
        file.pwrite(data, 0)
        file.sync()
    return []


def missing_topic_ids(findings: Iterable[Finding], directory: str) -> list[str]:
    """Return in words that a partition lacks its topic's id, which its broker needs."""
    path = os.path.join(directory, METADATA)
    return [
        f"{one.path}: {one.message}; {_STEP}"
        for one in findings
        if one.law == "DISK-49" and os.path.normpath(one.path) == os.path.normpath(path)
    ]


def contradicting_topic_ids(findings: Iterable[Finding], directory: str) -> list[str]:
    """Return in words that a partition's topic id contradicts that of another partition.

    The id is copied all the same: it may be the right one of the two.
    """
    path = os.path.join(directory, METADATA)
    return [
        f"{one.path}: {one.message}; {_COMPARE}"
        for one in findings
        if one.law == "DISK-50"
        and one.is_defect
        and os.path.normpath(one.path) == os.path.normpath(path)
    ]
