# SPDX-License-Identifier: Apache-2.0
"""A second opinion on `verify` of a store of RocketMQ: the model's laws, one by one.

Not covered: names of index files (RMQDISK-3), rights and change meanwhile (DISK-1, -2), sizes
(DISK-7), and laws that only a note speaks of.
Used by: the verb `verify --against model`, tests/stateful/rocketmq/test_verification.py.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from segproof.files import REAL_FILES
from segproof.findings import Finding
from segproof.rocketmq.geometry import find_geometries
from segproof.verification import VERIFIED_LAWS, verify
from segproof.verifying.rocketmq.places import PlaceKind, find_places
from segproof_harness.judge import LIMIT_BYTES, contents_of, disagreement
from segproof_model.directory import Directory
from segproof_model.laws import rocketmq_disk, rocketmq_disk_store

__all__ = ["ONLY_NOTES", "StoreJudge", "store_disagreements", "stores_below"]

NOT_JUDGED = frozenset({"RMQDISK-2", "RMQDISK-3", "DISK-1", "DISK-2", "DISK-7"})
ONLY_NOTES = frozenset({"RMQDISK-14", "RMQDISK-22", "RMQDISK-34", "RMQDISK-38"})
ImageLaw = Callable[[bytes, int], bool]
StoreLaw = Callable[["StoreJudge"], bool]

IMAGE_LAWS: dict[str, ImageLaw] = {
    "RMQDISK-1": rocketmq_disk.length_fits,
    "RMQDISK-4": rocketmq_disk.count_has_room,
    "RMQDISK-5": lambda image, _: rocketmq_disk.empty_file_is_zero(image),
    "RMQDISK-6": rocketmq_disk.rest_is_zero,
    "RMQDISK-7": rocketmq_disk.entry_0_is_zero,
    "RMQDISK-8": rocketmq_disk.slots_lead_to_entries,
    "RMQDISK-9": rocketmq_disk.chains_lead_back,
    "RMQDISK-10": rocketmq_disk.chains_keep_to_their_slot,
    "RMQDISK-11": rocketmq_disk.each_entry_is_named_once,
    "RMQDISK-12": rocketmq_disk.slot_count_fits,
    "RMQDISK-13": rocketmq_disk.differences_fit,
    "RMQDISK-14": rocketmq_disk.entries_read_within_the_header,
    "RMQDISK-15": rocketmq_disk.offsets_never_fall,
    "RMQDISK-16": rocketmq_disk.header_has_the_ends,
}
"""What is asked of each index file."""


class StoreJudge:
    """What the model says of one store, law by law. Names are relative: `index/2026...`."""

    def __init__(self, files: Mapping[str, bytes], hash_slot_num: int) -> None:
        self.store = Directory(tuple(sorted(files.items())))
        self.images = rocketmq_disk_store.index_images(self.store)
        self.hash_slot_num = hash_slot_num

    def breaks(self, law_id: str) -> bool:
        """Return whether the store breaks a law that can be judged."""
        if law_id in IMAGE_LAWS:
            sound = [
                image
                for image in self.images
                if law_id == "RMQDISK-1" or rocketmq_disk.length_fits(image, self.hash_slot_num)
            ]
            return not all(IMAGE_LAWS[law_id](image, self.hash_slot_num) for image in sound)
        return not STORE_LAWS[law_id](self)

    def has_entries(self, name: str) -> bool:
        """Return whether a name is that of an index file that counts entries."""
        image = self.store.read(name) or b""
        is_index = rocketmq_disk.INDEX_NAME.fullmatch(name.removeprefix("index/")) is not None
        return is_index and len(image) >= 40 and not rocketmq_disk.is_empty(image)

    @property
    def followed(self) -> Directory:
        """The store with nothing in the index files whose length or offsets are wrong."""
        slots = self.hash_slot_num
        kept = [
            (name, image)
            if not self.has_entries(name)
            or (
                rocketmq_disk.length_fits(image, slots)
                and rocketmq_disk.offsets_never_fall(image, slots)
            )
            else (name, b"")
            for name, image in self.store.files
        ]
        return Directory(tuple(kept))

    def broken(self) -> list[str]:
        """Return the laws that the store breaks, of those that make a defect."""
        judged = (IMAGE_LAWS.keys() | STORE_LAWS.keys()) & VERIFIED_LAWS - ONLY_NOTES
        return [law for law in sorted(judged) if self.breaks(law)]

    @property
    def checkpoint(self) -> bytes | None:
        """The bytes of `checkpoint`, if there is one."""
        return self.store.read("checkpoint")


def _with_index(
    predicate: Callable[[Directory, int], bool], *, needs_all: bool = False
) -> StoreLaw:
    """Return whether a law of index and log holds, for the index files that can be followed.

    What speaks of all of them is not asked where one with entries can't be followed.
    """

    def judge(judged: StoreJudge) -> bool:
        store = judged.followed
        is_whole = store == judged.store
        return (needs_all and not is_whole) or predicate(store, judged.hash_slot_num)

    return judge


STORE_LAWS: dict[str, StoreLaw] = {
    "RMQDISK-17": lambda one: rocketmq_disk.files_follow_each_other(one.images),
    "RMQDISK-18": lambda one: rocketmq_disk.files_have_one_length(one.images),
    "RMQDISK-19": lambda one: rocketmq_disk.earlier_files_are_full(one.images, one.hash_slot_num),
    "RMQDISK-20": lambda one: rocketmq_disk.checkpoint_is_sound(one.store),
    "RMQDISK-21": lambda one: (
        one.checkpoint is None
        or rocketmq_disk.checkpoint_knows_the_index(one.checkpoint, one.images)
    ),
    "RMQDISK-22": lambda one: rocketmq_disk.store_was_stopped(one.store),
    "RMQDISK-23": lambda one: rocketmq_disk_store.log_files_follow(one.store),
    "RMQDISK-24": lambda one: rocketmq_disk_store.records_are_whole(one.store),
    "RMQDISK-25": lambda one: rocketmq_disk_store.records_know_their_place(one.store),
    "RMQDISK-26": lambda one: rocketmq_disk_store.bodies_have_their_checksum(one.store),
    "RMQDISK-27": lambda one: rocketmq_disk_store.log_files_end_well(one.store),
    "RMQDISK-28": _with_index(rocketmq_disk_store.entries_lie_in_the_log),
    "RMQDISK-29": _with_index(rocketmq_disk_store.entries_lead_to_messages),
    "RMQDISK-30": _with_index(rocketmq_disk_store.entries_have_a_key_of_the_message),
    "RMQDISK-31": _with_index(rocketmq_disk_store.keys_have_entries, needs_all=True),
    "RMQDISK-32": _with_index(rocketmq_disk_store.times_are_those_of_the_messages),
    "RMQDISK-33": _with_index(rocketmq_disk_store.index_covers_the_log, needs_all=True),
    "RMQDISK-34": _with_index(rocketmq_disk_store.messages_are_indexed_once),
    "RMQDISK-35": lambda one: rocketmq_disk_store.queues_have_whole_units(one.store),
    "RMQDISK-36": lambda one: rocketmq_disk_store.queues_rise(one.store),
    "RMQDISK-37": lambda one: rocketmq_disk_store.units_lead_to_their_records(one.store),
    "RMQDISK-38": lambda one: rocketmq_disk.index_names_are_known(one.store),
    "RMQDISK-39": lambda one: rocketmq_disk_store.folders_hold_their_files(one.store),
}
"""What is asked of a whole store."""


def stores_below(path: str | os.PathLike[str]) -> list[Path]:
    """Return the stores at or below `path`."""
    places = find_places(os.fspath(path), REAL_FILES)
    return [Path(place.path) for place in places if place.kind is PlaceKind.STORE]


def store_disagreements(store: Path) -> Iterator[Finding]:
    """Yield a finding for each law on which `verify` and the model part.

    Raises: OSError; ValueError for a store above LIMIT_BYTES, or one whose index files do not tell
    how many slots they have, all the same number.
    """
    paths = [path for path in store.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in paths)
    if size > LIMIT_BYTES:
        raise ValueError(f"{store}: {size} bytes are more than the model is given, {LIMIT_BYTES}")
    files = {path.relative_to(store).as_posix(): contents_of(path) for path in paths}
    folders = [path for path in store.rglob("*") if path.is_dir() and not any(path.iterdir())]
    files |= {f"{path.relative_to(store).as_posix()}/": b"" for path in folders}
    judge = StoreJudge(files, _slots_of(store, files))
    findings = list(verify(store))
    defects = {each.law for each in findings if each.is_defect}
    for law_id in sorted(defects - NOT_JUDGED):
        if not judge.breaks(law_id):
            yield disagreement(law_id, store, reported=True)
    if not defects:
        for law_id in judge.broken():
            yield disagreement(law_id, store, reported=False)


def _slots_of(store: Path, files: Mapping[str, bytes]) -> int:
    names = [name.removeprefix("index/") for name in files if name.startswith("index/")]
    answers = find_geometries(os.fspath(store / "index"), names)
    told = {one.geometry.hash_slot_num for one in answers.values() if one.geometry is not None}
    if len(told) > 1:
        raise ValueError(f"{store}: its index files have different numbers of slots")
    return told.pop() if told else 1
