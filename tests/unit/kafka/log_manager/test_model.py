# SPDX-License-Identifier: Apache-2.0
"""Single facts of a log directory, seen on the classes of Kafka 4.3.1."""

import pytest

from segproof_model.kafka.broker.log_manager import LogManager
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.record import Record
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES

CONFIG = LogConfig(segment_index_bytes=240)
MARKER = ".kafka_cleanshutdown"
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)


def manager_of(
    files: Files | None = None, log_dir: str = "", release: Release = NEWEST_KAFKA
) -> LogManager:
    """Return the manager of a log directory, which has loaded nothing."""
    return release.kind(LogManager)(files or Files(now_ms=1_000_000), log_dir, CONFIG)


def two_records() -> bytes:
    """Return a batch with two records."""
    return write_batch([Record(n, 5 + n, b"k", b"ab") for n in range(2)], base_offset=0)


@pytest.mark.checks("LOAD-11", "LOAD-13")
def test_what_a_log_directory_keeps() -> None:
    """Checkpoints tell where logs begin and what is durable; the marker tells of a clean stop."""
    manager = manager_of(log_dir="d")
    manager.load_logs()
    log = manager.get_or_create_log("t", 1)
    log.append_as_leader(two_records(), 0)
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1)
    manager.shutdown()
    files = manager.files
    assert b"0\n1\nt 1 2\n" == files.image("d/recovery-point-offset-checkpoint")
    assert b"0\n1\nt 1 1\n" == files.image("d/log-start-offset-checkpoint")
    assert b'{"version":0,"brokerEpoch":-1}' == files.image(f"d/{MARKER}")
    again = manager_of(files, "d")
    again.load_logs()
    loaded = again.log_of("t", 1)
    assert loaded is not None
    bounds = loaded.log_start_offset, loaded.log_end_offset, loaded.recovery_point
    assert (1, 2, 2) == bounds
    assert f"d/{MARKER}" not in again.files


@pytest.mark.checks("LOAD-11", "SEG-44")
def test_a_stop_leaves_the_same_files_whoever_cuts_them() -> None:
    """Since 4.4 not the closing log but the log manager cuts the indexes, and writes the times."""
    left, name = [], "d/t-1/00000000000000000000.timeindex"
    for release, closed in (("kafka-4.3.1", 12), ("kafka-4.4.0", 240)):
        manager = manager_of(log_dir="d", release=RELEASES[release])
        manager.load_logs()
        manager.get_or_create_log("t", 1).append_as_leader(two_records(), 0)
        step = apply(manager, lambda draft: draft.get_or_create_log("t", 1).close())
        assert closed == len(step.after.files.image(name))
        left.append(apply(manager, "shutdown").after.files)
    assert left[0] == left[1]
    assert 12 == len(left[1].image(name))


def test_the_topic_id_of_a_log() -> None:
    """It is written where there is none, and another one is refused."""
    manager = manager_of(log_dir="d")
    manager.load_logs()
    name, topic_id = "d/t-1/partition.metadata", bytes([*range(15), 1])
    manager.get_or_create_log("t", 1)
    assert name not in manager.files
    log = manager.get_or_create_log("t", 1, topic_id)
    assert b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OAQ" == manager.files.image(name)
    images = manager.files.images
    assert log is manager.get_or_create_log("t", 1, topic_id)
    assert KAFKA_ERROR == outcome_of(manager.get_or_create_log, "t", 1, bytes(15) + b"x")
    assert images == manager.files.images


def test_a_directory_that_is_none_of_a_partition_stops_loading() -> None:
    """Nothing is loaded, and the next stop is no clean one."""
    manager = manager_of(Files({"strange/x": b""}))
    assert KAFKA_ERROR == outcome_of(manager.load_logs)
    manager.shutdown()
    assert MARKER not in manager.files


@pytest.mark.parametrize(
    "name", ["t-0.8f1c-delete", "remote-log-index-cache", "__cluster_metadata-0"]
)
def test_other_directories_are_left_alone(name: str) -> None:
    """They are loaded by nobody, or by others."""
    manager = manager_of(Files({f"{name}/x": b""}))
    manager.load_logs()
    assert () == manager.logs


def test_a_clean_stop_before_makes_the_next_one_clean() -> None:
    """Kafka writes the marker again, also where a log could not be loaded in between."""
    manager = manager_of(Files({"strange/x": b"", MARKER: b""}))
    assert KAFKA_ERROR == outcome_of(manager.load_logs)
    assert MARKER not in manager.files
    manager.shutdown()
    assert MARKER in manager.files
