# SPDX-License-Identifier: Apache-2.0
"""Defects of the index file and the index service that were really there, each as it was met."""

import struct

import pytest

from segproof.errors import CorruptIndexError, IndexClosedError
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import DispatchRequest
from segproof_harness.files.memory_files import MemoryFiles

NAME = "20231114221320123"
ALL = (0, 2**62)


def request(offset: int, keys: str, tags: str | None = None) -> DispatchRequest:
    """Return a message with these keys and tags."""
    properties = None if tags is None else (("TAGS", tags),)
    return DispatchRequest("T", offset, 1, 0, 1000 + offset, 0, keys, None, 0, 0, properties)


def write(files: MemoryFiles, path: str, position: int, number: int) -> None:
    """Write an int32 into a file that is not open."""
    file = files.open(path, writable=True)
    file.pwrite(struct.pack(">i", number), position)
    file.close()


def test_tags_that_are_none_are_the_text_null() -> None:
    """A query of the type T without a key looked for `None`, the name of Python's, not `null`."""
    files = MemoryFiles()
    with IndexService.open("/s", 4, 9, create=True, files=files) as service:
        service.build_index(request(7, "", "null"))
        assert (7,) == service.query_offset("T", None, 9, *ALL, "T").phy_offsets
        assert () == service.query_offset("T", "None", 9, *ALL, "T").phy_offsets


def test_a_count_beyond_the_room_does_not_end_the_building() -> None:
    """Damage wrote a count of 1000 into a file of 9: the entries of its last message were sought
    behind its end, and the message raised an error instead of going to a new file.
    """
    files = MemoryFiles()
    with IndexService.open("/s", 4, 9, create=True, files=files) as service:
        service.build_index(request(7, "a b"))
    (path,) = (f"/s/index/{name}" for name in files.list_directory("/s/index"))
    write(files, path, 36, 1000)
    with IndexService.open("/s", 4, 9, create=True, files=files) as service:
        assert service.load(True)
        service.build_index(request(7, "a b"))
        assert [8, 2] == [len(file) for file in service.index_files]


@pytest.mark.parametrize(("index", "max_num"), [(2, 1), (1, 2)])
def test_what_the_last_entry_leads_to_counts_though_the_list_is_full(
    index: int, max_num: int
) -> None:
    """A chain that leads upwards was told only if more was wanted than its sound part has."""
    files = MemoryFiles()
    with IndexFile.open(f"/{NAME}", 1, 9, create=True, files=files) as file:
        for offset in (1, 2):
            file.put_key("a", offset, 1000)
    write(files, f"/{NAME}", 44 + 20 * index + 16, 2)
    with IndexFile.open(f"/{NAME}", 1, 9, create=True, files=files) as file:
        with pytest.raises(CorruptIndexError):
            file.select_phy_offset([], "a", max_num, *ALL)
        with pytest.raises(CorruptIndexError):
            file.select_phy_offset_many(["a"], max_num, *ALL)


def test_a_closed_file_without_entries_lists_none() -> None:
    """It raises as every closed file does; it ended as if it were open and empty."""
    file = IndexFile.open(f"/{NAME}", 1, 9, create=True, files=MemoryFiles())
    file.close()
    with pytest.raises(IndexClosedError):
        list(file)


def test_a_closed_service_makes_no_file() -> None:
    """A message made a file, and the checkpoint was found closed only when that was full."""
    files = MemoryFiles()
    service = IndexService.open("/s", 4, 9, create=True, files=files)
    service.close()
    service.close()
    for use in (
        lambda: service.build_index(request(7, "a")),
        lambda: service.load(True),
        lambda: service.query_offset("T", "a", 9, *ALL),
        lambda: service.delete_expired_file(7),
        lambda: service.flush(0),
    ):
        with pytest.raises(IndexClosedError):
            use()
    assert ["checkpoint"] == sorted(files.images("/s", with_folders=True))
