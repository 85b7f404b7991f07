# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with an index file, newest first."""

from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.rocketmq.format import index_file


class ShutdownEndsAtFailedFlush(Behaviour):
    """Shutting an index file down ends where its flush fails, and does not give its memory back."""

    laws = ("RMQIDX-14",)
    releases = up_to("5.3.3")

    class IndexFile(index_file.IndexFile):
        """The index file."""

        @override
        def shutdown(self) -> None:
            self.flush()
            super().shutdown()


class EachPutIsCounted(Behaviour):
    """The slot count grows with each put, not only with one into a free slot."""

    laws = ("RMQIDX-24", "RMQIDX-29", "RMQIDX-30")
    releases = up_to("4.7.0")

    class IndexFile(index_file.IndexFile):
        """The index file."""

        @override
        def count_slot(self, prev_index: int) -> None:
            super().count_slot(0)
