# SPDX-License-Identifier: Apache-2.0
"""What is measured of RocketMQ's index files is the same work, with the same answers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

KEYS = 500


@pytest.fixture(autouse=True)
def _small_files(_checkout_on_path: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure small files."""
    from benchmarks import rocketmq

    monkeypatch.setattr(rocketmq, "HASH_SLOT_NUM", 100)
    monkeypatch.setattr(rocketmq, "INDEX_NUM", 1000)


def test_keys_are_distinct_and_of_one_width() -> None:
    """The first and the last part of the keys too, and those that are never put."""
    from benchmarks import rocketmq

    rows = np.concatenate([rocketmq.key_rows(0, KEYS), rocketmq.key_rows(1 << 40, KEYS)])
    assert 2 * KEYS == len(np.unique(rows))
    assert {rocketmq.KEY_BYTES} == {len(key) for key in rows.tolist()}
    assert rows[:KEYS].tolist() == [*rocketmq.key_rows(0, 7), *rocketmq.key_rows(7, KEYS - 7)]


def test_every_form_of_puts_writes_the_same(answer: Callable[..., int], tmp_path: Path) -> None:
    """The checksum is that of the bytes; the file of a pass is gone after it."""
    from benchmarks import rocketmq

    keys = tmp_path / "keys"
    rocketmq.key_rows(0, KEYS).tofile(keys)
    rows = answer("index-put", tmp_path / "a", keys, "numpy")
    assert rows == answer("index-put", tmp_path / "b", keys, "list")
    assert [] == list((tmp_path / "a").iterdir())
    part = answer("index-put", tmp_path / "c", keys, "numpy", 5)
    assert part not in (rows, answer("index-put-each", tmp_path / "d", keys, KEYS // 5))


def test_lookups_find_what_was_put(answer: Callable[..., int], tmp_path: Path) -> None:
    """At once and one by one; keys that were never put find next to nothing."""
    from benchmarks import rocketmq

    rows, index, keys = rocketmq.key_rows(0, KEYS), tmp_path / "1", tmp_path / "keys"
    rocketmq.write_index(index, rows)
    rows[::5].tofile(keys)
    expected = sum(range(0, KEYS, 5)) * rocketmq.MESSAGE_BYTES
    assert expected == answer("index-select", index, keys)
    assert expected == answer("index-select-each", index, keys, KEYS)
    assert KEYS + 1 == answer("index-open", index)
    rocketmq.key_rows(1 << 40, KEYS).tofile(keys)
    assert 0 == answer("index-select", index, keys)


def test_arrow_is_not_run_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row says which package is missing."""
    from benchmarks import rocketmq
    from benchmarks.contestants import NotRunError

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotRunError, match="pyarrow"):
        rocketmq.with_form("arrow")
    rocketmq.with_form("numpy")
