# SPDX-License-Identifier: Apache-2.0
"""The options of a log: the same on both sides, and refused where they make no sense."""

from dataclasses import asdict
from typing import Any

import pytest

from segproof.errors import InvalidArgumentError
from segproof.kafka.log_config import LogConfig
from segproof_model.kafka.format.log_config import LogConfig as ModelLogConfig


def test_defaults_are_equal() -> None:
    """Model and implementation have the same options in the same order, with equal defaults."""
    assert list(asdict(ModelLogConfig()).items()) == list(asdict(LogConfig()).items())


@pytest.mark.parametrize("config", [LogConfig, ModelLogConfig])
def test_age_of_a_segment(config: Any) -> None:
    """Compaction limits the age of a segment; deletion alone does not."""
    compacted = {"cleanup_policy": "compact, delete", "segment_ms": 500}
    assert 500 == config(segment_ms=500, max_compaction_lag_ms=60).max_segment_ms
    assert 60 == config(**compacted, max_compaction_lag_ms=60).max_segment_ms
    assert 500 == config(**compacted, max_compaction_lag_ms=600).max_segment_ms
    assert 500 == config(cleanup_policy="", segment_ms=500, max_compaction_lag_ms=6).max_segment_ms


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("segment_bytes", 13),
        ("segment_bytes", 2**31),
        ("segment_ms", 0),
        ("retention_ms", -2),
        ("index_interval_bytes", -1),
        ("producer_id_expiration_ms", 0),
        ("message_timestamp_type", "createtime"),
        ("compression_type", "lzma"),
        ("cleanup_policy", "archive"),
        ("cleanup_policy", "delete,,archive"),
    ],
)
def test_refused_options(option: str, value: Any) -> None:
    """The message names the option and what it may be."""
    with pytest.raises(InvalidArgumentError, match=option):
        LogConfig(**{option: value})
