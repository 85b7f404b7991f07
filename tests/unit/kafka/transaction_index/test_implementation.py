# SPDX-License-Identifier: Apache-2.0
"""The transaction index of the implementation: against the model, on real files, and in bulk."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import (
    CorruptIndexError,
    IndexClosedError,
    InvalidArgumentError,
    ReadOnlyIndexError,
)
from segproof.files import REAL_FILES
from segproof.kafka.transaction_index import (
    ABORTED_TXN_DTYPE,
    AbortedTxn,
    TransactionIndex,
    TxnIndexSearchResult,
    read_aborted_txns,
)
from segproof_model.kafka.format import transaction_index as model
from segproof_tests.altered_files import altered
from segproof_tests.beside import run_beside

ONE = AbortedTxn(0, 1, 5, 15, 13)
TWO = AbortedTxn(0, 2, 16, 25, 30)
THREE = AbortedTxn(0, 1, 26, 40, 41)

OFFSETS = st.one_of(st.integers(-2, 30), st.sampled_from((-(2**63), 2**31, 2**63 - 1)))
TXNS = st.builds(
    AbortedTxn, st.sampled_from((0, 0, 0, 0, 1, 256, -1)), st.integers(0, 3), OFFSETS, OFFSETS,
    OFFSETS,
)  # fmt: skip


def test_real_files(tmp_path: Path) -> None:
    """A file is made by the first append, found again, moved, cut and removed."""
    path = tmp_path / "0.txnindex"
    with TransactionIndex(0, path, create=True) as index:
        assert (False, 0, True) == (path.exists(), len(index), index.is_empty)
        index.append(ONE)
        index.append(TWO)
        index.flush()
    assert ONE.to_bytes() + TWO.to_bytes() == path.read_bytes()
    index = TransactionIndex(0, path, create=True)
    assert ([ONE, TWO], 2, path.read_bytes()) == (list(index), len(index), index.to_bytes())
    assert TxnIndexSearchResult([TWO], True) == index.collect_aborted_txns(16, 30)
    index.rename_to(tmp_path / "1.txnindex")
    index.truncate_to(25)
    index.append(THREE)
    assert ONE.to_bytes() + THREE.to_bytes() == (tmp_path / "1.txnindex").read_bytes()
    assert index.delete_if_exists()
    assert not index.delete_if_exists()
    assert [] == list(tmp_path.iterdir())


def test_moved_directory(tmp_path: Path) -> None:
    """After its directory was moved, the index knows its new path."""
    (tmp_path / "old").mkdir()
    index = TransactionIndex(0, tmp_path / "old" / "0.txnindex", create=True)
    index.append(ONE)
    (tmp_path / "old").rename(tmp_path / "new")
    index.update_parent_dir(tmp_path / "new")
    index.append(TWO)
    assert 68 == (tmp_path / "new" / "0.txnindex").stat().st_size
    assert index.delete_if_exists()


def test_failed_rename_keeps_the_path(tmp_path: Path) -> None:
    """Where the move fails, the path is still the old one."""
    index = TransactionIndex(0, tmp_path / "a", create=True)
    index.append(ONE)
    with pytest.raises(FileNotFoundError):
        index.rename_to(tmp_path / "missing" / "a")
    assert str(tmp_path / "a") == index.file
    index.close()


def test_reading_never_writes(tmp_path: Path) -> None:
    """Opened for reading, a file that the user may not write to is listed; nothing is made."""
    path = tmp_path / "a"
    path.write_bytes(ONE.to_bytes() + b"tail")
    path.chmod(0o444)
    with TransactionIndex(0, path) as index:
        assert [ONE] == index.all_aborted_txns()
        for change in (index.reset, lambda: index.append(TWO), lambda: index.truncate_to(0)):
            with pytest.raises(ReadOnlyIndexError):
                change()
        with pytest.raises(CorruptIndexError, match=r"byte 34: 4 bytes behind .*TXNIDX-16"):
            index.sanity_check()
    with TransactionIndex(0, tmp_path / "b") as index:
        assert index.is_empty
    assert [path] == list(tmp_path.iterdir())
    assert ONE.to_bytes() + b"tail" == path.read_bytes()


def test_closed_is_closed(tmp_path: Path) -> None:
    """Every use of a closed index raises the same error; its length is 0."""
    index = TransactionIndex(0, tmp_path / "a", create=True)
    index.append(ONE)
    index.close()
    index.close()
    uses = (
        index.all_aborted_txns, index.sanity_check, index.flush, index.reset, index.to_bytes,
        lambda: index.append(TWO), lambda: index.truncate_to(0),
        lambda: index.collect_aborted_txns(0, 1),
    )  # fmt: skip
    for use in uses:
        with pytest.raises(IndexClosedError, match="closed"):
            use()
    assert (0, "closed") == (len(index), repr(index).rpartition(" ")[2].rstrip(")"))


def test_file_that_appears_is_not_written_to(tmp_path: Path) -> None:
    """A file that another program made since opening is left alone."""
    index = TransactionIndex(0, tmp_path / "a", create=True)
    (tmp_path / "a").write_bytes(TWO.to_bytes())
    with pytest.raises(FileExistsError, match="another program"):
        index.append(ONE)
    assert TWO.to_bytes() == (tmp_path / "a").read_bytes()


def test_numbers_that_do_not_fit() -> None:
    """A number of more than 64 bits is refused before anything is written."""
    with pytest.raises(InvalidArgumentError, match="does not fit"):
        AbortedTxn(0, 2**63, 0, 0, 0).to_bytes()
    with pytest.raises(InvalidArgumentError, match="no 34 bytes"):
        AbortedTxn.from_bytes(bytes(40), 7)


def test_bulk_reading() -> None:
    """The array has native byte order, its own memory, and no partial tail."""
    data = bytearray(ONE.to_bytes() + b"\xff\1" + TWO.to_bytes()[2:] + bytes(33))
    table = read_aborted_txns(data)
    assert (ABORTED_TXN_DTYPE, 2, True) == (table.dtype, len(table), table.dtype.isnative)
    assert [tuple(ONE), (-255, *TWO[1:])] == table.tolist()
    data[2:] = bytes(len(data) - 2)
    assert np.array_equal([1, 2], table["producer_id"])
    assert 0 == len(read_aborted_txns(b""))


@given(st.lists(TXNS, max_size=5), st.binary(max_size=33))
def test_bulk_reading_is_the_model(txns: list[AbortedTxn], tail: bytes) -> None:
    """Codec and bulk reader agree with the model on every number."""
    data = b"".join(txn.to_bytes() for txn in txns) + tail
    assert model.read_aborted_txns(data) == list(map(tuple, read_aborted_txns(data).tolist()))
    assert data[: 34 * len(txns)] == b"".join(
        model.AbortedTxn(*txn).to_bytes() for txn in model.read_aborted_txns(data)
    )
    assert txns == [AbortedTxn.from_bytes(data, 34 * number) for number in range(len(txns))]


@pytest.mark.parametrize("left", [[], [ONE]])
def test_a_file_that_is_cut_while_it_is_opened(left: list[AbortedTxn], tmp_path: Path) -> None:
    """Its writer may cut it between the question for its size and the reading of its end."""
    path = tmp_path / f"{0:020d}.txnindex"
    path.write_bytes(b"".join(one.to_bytes() for one in (ONE, TWO, THREE)))

    def open_file(name: str, **options: Any) -> Any:
        file = REAL_FILES.open(name, **options)

        def size_before_the_cut() -> int:
            size = file.size()
            os.truncate(name, len(left) * TransactionIndex.ENTRY_SIZE)
            return size

        return altered(file, size=size_before_the_cut)

    with TransactionIndex.open(path, files=altered(open=open_file)) as index:
        assert left == [*index]
        assert index.last_offset == (left[-1].last_offset if left else None)


def test_readers_beside_the_writer(tmp_path: Path) -> None:
    """What a reader lists while another thread appends is a prefix of what is appended."""
    index = TransactionIndex(0, tmp_path / "a", create=True)
    appended = [AbortedTxn(0, 7, number, number, number) for number in range(300)]

    def read() -> None:
        listed = index.all_aborted_txns()
        assert listed == appended[: len(listed)]

    def write() -> None:
        for txn in appended:
            index.append(txn)

    assert ([], 300) == (run_beside(write, read, read), len(index))
    index.close()
