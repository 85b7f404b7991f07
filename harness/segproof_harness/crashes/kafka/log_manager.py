# SPDX-License-Identifier: Apache-2.0
"""A world of crashes: a log manager with one log, which loads the log by its checkpoints.

A truncation does not write the checkpoints: a later step does, or the shutdown.
"""

import random
from typing import Any

from segproof.errors import IndexClosedError
from segproof.kafka import LogManager, PartitionLog
from segproof_harness.crashes.kafka.partition_log import DATA, TOPIC, PartitionLogWorld
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.machine.simulated_files import SimulatedFiles

__all__ = ["LogManagerWorld"]


class LogManagerWorld(PartitionLogWorld):
    """One log of a directory of logs; `manager_class` may be another implementation."""

    manager_class: type[LogManager] = LogManager

    def begin(self, files: SimulatedFiles) -> None:
        """Make a directory of logs, and an empty log in it."""
        self.files: Any = files
        self._begin_manager()

    def _begin_manager(self) -> None:
        self.manager = self._managing(self.files)
        self.log = self.manager.get_or_create_log(*TOPIC)

    def _managing(self, files: Any) -> LogManager:
        return self.manager_class(
            DATA, self.config, create=True, files=files, time=lambda: self.now_ms
        )

    def load(self, files: MemoryFiles) -> PartitionLog:
        """Load all logs of the directory."""
        return self._managing(files).get_or_create_log(*TOPIC)

    def after_truncation(self) -> None:
        """Leave the checkpoints as they are."""

    def _write_checkpoints(self, draw: random.Random) -> None:
        if draw.random() < 0.7:
            self.manager.checkpoint_log_recovery_offsets()
            self.promise(self.log.recovery_point)
        if draw.random() < 0.7:
            self.manager.checkpoint_log_start_offsets()

    def _restart(self, draw: random.Random) -> None:
        end = self.records_end()
        self.manager.shutdown()
        self._durable = end
        self._begin_manager()

    def open_again(self) -> None:
        """Ask the manager for the log: it loads it as after a crash. If it is shut down, a new one.

        A shutdown that failed has ended the manager too.
        """
        try:
            self.log = self.manager.get_or_create_log(*TOPIC)
        except IndexClosedError:
            self._begin_manager()
        self._note_reopened()
