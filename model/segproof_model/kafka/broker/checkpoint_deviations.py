# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with checkpoints and partition.metadata."""

from collections.abc import Iterable
from typing import Any

from segproof_model.kafka.broker import checkpoint_file, partition_metadata_file
from segproof_model.language.behaviours import Behaviour, override
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import outcome_of, refuse


class UnreadableTextIsRefused(Behaviour):
    """What would not be read back as it was given is not written."""

    laws = ("CKPT-6", "META-2")
    of_segproof = True

    class CheckpointFile(checkpoint_file.CheckpointFile):
        """Any checkpoint."""

        @override
        def write(self, entries: Iterable[Any]) -> None:
            known = list(entries)
            if outcome_of(self.entries_in, self.image_of(known)) != known:
                refuse(ErrorKind.INVALID_ARGUMENT)
            super().write(known)

    class PartitionMetadataFile(partition_metadata_file.PartitionMetadataFile):
        """The file partition.metadata."""

        @override
        def write(self, topic_id: bytes) -> None:
            if topic_id == partition_metadata_file.ZERO:
                refuse(ErrorKind.INVALID_ARGUMENT)
            super().write(topic_id)
