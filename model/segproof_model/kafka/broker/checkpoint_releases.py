# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with checkpoints and partition.metadata, newest first."""

from segproof_model.kafka.broker import checkpoint_file, partition_metadata_file
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.outcomes import ErrorKind


class MetadataVersionIsExact(Behaviour):
    """partition.metadata is known in version 0 only."""

    laws = ("META-2",)
    releases = up_to("3.6.2")

    class PartitionMetadataFile(partition_metadata_file.PartitionMetadataFile):
        """The file partition.metadata."""

        @override
        def is_known(self, version: int) -> bool:
            return version == partition_metadata_file.VERSION


class EntryNumberIsIoError(Behaviour):
    """A field of a checkpoint's entry that is no number raises the I/O error, as other damage."""

    laws = ("CKPT-4",)
    releases = up_to("2.8.2")

    class CheckpointFile(checkpoint_file.CheckpointFile):
        """Any checkpoint."""

        number_kind = ErrorKind.IO_ERROR


class TextDamageIsIoError(Behaviour):
    """A negative count of a checkpoint, and a partition.metadata that ends early or has no base64,
    raise the I/O error as other damage does, not one by accident.
    """

    laws = ("CKPT-3", "META-2")
    releases = up_to("2.8.2")
    of_segproof = True

    class CheckpointFile(checkpoint_file.CheckpointFile):
        """Any checkpoint."""

        count_kind = ErrorKind.IO_ERROR

    class PartitionMetadataFile(partition_metadata_file.PartitionMetadataFile):
        """The file partition.metadata."""

        end_kind = ErrorKind.IO_ERROR
        base64_kind = ErrorKind.IO_ERROR
