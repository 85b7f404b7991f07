# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with the producer state."""

from segproof_model.kafka.broker import producer_append_info, producer_state
from segproof_model.kafka.broker.producer_snapshot import ProducerStateEntry
from segproof_model.kafka.broker.producer_state import SNAPSHOT_SUFFIX
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.behaviours import Behaviour, override
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse


class BatchIsRefusedFirst(Behaviour):
    """A batch without a transaction in the midst of one is refused before anything is changed."""

    laws = ("PROD-8",)
    of_segproof = True

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def check_data_batch(self, batch: RecordBatch) -> None:
            super().check_data_batch(batch)
            is_open = self.updated_entry.current_txn_first_offset is not None
            if is_open and not batch.is_transactional:
                refuse(ErrorKind.INVALID_TRANSACTION_STATE)


class SnapshotNamesAreExact(Behaviour):
    """A file whose name is not just as Kafka writes it is no snapshot."""

    laws = ("PROD-6",)
    of_segproof = True

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        @override
        def is_snapshot_file(self, name: str) -> bool:
            try:
                exact = segment_file_name(offset_of_name(name), SNAPSHOT_SUFFIX)
            except Refused:
                return False
            return name == exact


class MissingSnapshotIsSkipped(Behaviour):
    """A snapshot that is gone when it is to be loaded is passed over, as a corrupt one is."""

    laws = ("PROD-3",)
    of_segproof = True

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        @override
        def read_snapshot(self, name: str) -> list[ProducerStateEntry]:
            if name not in self.files:
                refuse(ErrorKind.CORRUPT_SNAPSHOT)
            return super().read_snapshot(name)
