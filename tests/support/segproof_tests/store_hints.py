# SPDX-License-Identifier: Apache-2.0
"""Situations of stores of RocketMQ whose hints are built in functions."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from segproof_harness.laws.file_damages import later
from segproof_tests.built_hints import PACK, STORE, Situation
from segproof_tests.store_files import QUEUE_FILE_BYTES, logs, long_store

TOPICS = '{"topicConfigTable":{"T":{"readQueueNums":4}}}'
NOT_JSON = "\0" * 60
QUEUE = "consumequeue/T/0"
MESSAGES = 24
"""Messages of a store whose log has four files."""


def sound(folder: Path, messages: int = MESSAGES) -> Path:
    """Write a sound store; return its path."""
    return long_store(folder / STORE, messages)


@later
def inside(folder: Path, numbers: Sequence[int], end: str = "") -> None:
    """Return what moves files of the log into a folder in `commitlog`, packed by `end`."""
    store = sound(folder, 40)
    paths = logs(store)
    (store / "commitlog" / "d2").mkdir()
    for number in numbers:
        path = paths[number]
        packed = PACK[end](path.read_bytes())
        (store / "commitlog" / "d2" / f"{path.name}{end}").write_bytes(packed)
        path.unlink()


def named_by_number(folder: Path) -> None:
    """Give a file of the log the name of its offset without zeros, which a broker loads."""
    path = logs(sound(folder, 40))[1]
    path.rename(path.with_name(str(int(path.name))))


def cut_by_number(folder: Path) -> None:
    """Give a file such a name, and cut it within its last message."""
    named_by_number(folder)
    (path,) = (one for one in (folder / STORE / "commitlog").iterdir() if len(one.name) < 20)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@later
def copied_inside(
    folder: Path, end: str = "", damaged: Sequence[int] = (), damaged_inside: Sequence[int] = ()
) -> None:
    """Return what copies a file of the log into a folder in `commitlog`, packed by `end`, and
    changes bytes of the log's file, or of the copy, by their positions.
    """
    path = logs(sound(folder))[1]
    data = path.read_bytes()
    (path.parent / "o'l d").mkdir()
    copy = PACK[end](_changed(data, damaged_inside))
    (path.parent / "o'l d" / f"{path.name}{end}").write_bytes(copy)
    path.write_bytes(_changed(data, damaged))


def _changed(data: bytes, positions: Sequence[int]) -> bytes:
    changed = bytearray(data)
    for position in positions:
        changed[position] ^= 1
    return bytes(changed)


@later
def put_back(folder: Path, number: int) -> None:
    """Return what puts a file of the log back that no command names."""
    log = folder / STORE / "commitlog"
    path = sorted((log / "d2").iterdir())[number]
    shutil.copyfile(path, log / path.name)


@later
def over_two_folders(folder: Path, *moved: int, linked: Sequence[int] = ()) -> None:
    """Return what moves files of the log, by number, to another folder, and links some back."""
    store, other = sound(folder, 40), folder / "data" / "other"
    other.mkdir()
    paths = logs(store)
    for number in moved:
        paths[number].rename(other / paths[number].name)
    for number in linked:
        paths[number].symlink_to(f"../../other/{paths[number].name}")


def lost_with_backup(folder: Path) -> None:
    """Copy files of a log to another folder; lose one of these, and damage another one."""
    store, other = sound(folder, 40), folder / "data" / "other"
    other.mkdir()
    paths = logs(store)
    for path in paths[2:5]:
        shutil.copy(path, other)
    paths[4].unlink()
    paths[3].write_bytes(bytes(paths[3].stat().st_size))


@later
def with_config(folder: Path, /, **files: str) -> None:
    """Return what writes files into `config`; two underscores stand for a dot in a name."""
    config = sound(folder, 3) / "config"
    config.mkdir()
    for name, text in files.items():
        (config / name.replace("__", ".")).write_text(text)


def topics_from_backup(folder: Path) -> None:
    """Put the file of a backup in its place."""
    (folder / STORE / "config" / "topics.json").write_text(TOPICS)


def topics_as_written(folder: Path) -> None:
    """Put the state in its place that a broker was writing."""
    written = folder / STORE / "config" / "topics.json.tmp"
    shutil.copyfile(written, folder / STORE / "config" / "topics.json")


@later
def without(folder: Path, name: str) -> None:
    """Return what removes a folder or a file of a store."""
    path = sound(folder) / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def without_first_log(folder: Path) -> None:
    """Remove the first file of the log, as if it had expired."""
    logs(sound(folder))[0].unlink()


def log_in_the_store(folder: Path) -> None:
    """Put the files of the log one folder too high."""
    store = sound(folder)
    for path in logs(store):
        path.rename(store / path.name)
    (store / "commitlog").rmdir()


def empty_queue_file(folder: Path) -> None:
    """Add an empty file to a queue."""
    queue = sound(folder) / QUEUE
    (queue / f"{160:020d}").write_bytes(b"")


def without_a_topic(folder: Path) -> None:
    """Remove the queues of one of two topics."""
    store = sound(folder)
    shutil.rmtree(store / "consumequeue" / "T")
    other = store / "consumequeue" / "U" / "0"
    other.mkdir(parents=True)
    (other / f"{0:020d}").write_bytes(bytes(QUEUE_FILE_BYTES))


def without_index(folder: Path) -> None:
    """Remove the index files although the checkpoint has their time."""
    store = sound(folder)
    shutil.rmtree(store / "index")
    stored = bytearray((store / "checkpoint").read_bytes())
    stored[16:24] = stored[8:16]
    (store / "checkpoint").write_bytes(stored)


def found_file(folder: Path) -> None:
    """Put a file of a log into lost+found, under the number of its inode."""
    paths = logs(sound(folder))
    (folder / "data" / "lost+found").mkdir()
    paths[1].rename(folder / "data" / "lost+found" / "#4711")


def in_its_own_folder(folder: Path) -> None:
    """Put a file of the log into a folder of its name."""
    path = logs(sound(folder))[1]
    path.rename(folder / "x")
    path.mkdir()
    (folder / "x").rename(path / path.name)


def put_back_from_its_folder(folder: Path) -> None:
    """Do what the next finding says of the folder that has another name now."""
    (other,) = (folder / STORE / "commitlog").glob("*.folder")
    (inside,) = other.iterdir()
    inside.rename(other.with_suffix(""))
    other.rmdir()


def queue_with_a_zero(folder: Path) -> None:
    """Write a zero before the number of a queue."""
    queue = sound(folder) / QUEUE
    queue.rename(queue.with_name("00"))


COMMIT_LOG = f"{STORE}/commitlog"
MOVE_OUT = "verifying/rocketmq/files_inside._move_out"
FIRST_BODY, SECOND_BODY = 90, 330
"""A byte of the body of the first message of a file, and of the second one."""
PUT_BACK = "verifying/rocketmq/files_inside._put_back"
SITUATIONS = (
    Situation(
        "a zero stands before the number of a queue",
        "verifying/rocketmq/queue_checks._to_its_number", queue_with_a_zero, "RMQDISK-39", (STORE,),
    ),
    *(
        Situation(
            f"a file of the log lies in a folder in it{', packed as ' if end else ''}{end}",
            PUT_BACK, inside((1,), end), "RMQDISK-39", (STORE,),
        )
        for end in PACK
    ),
    Situation(
        "the name of a file of the log lacks its zeros", PUT_BACK,
        named_by_number, "RMQDISK-39", (STORE,),
    ),
    Situation(
        "the name of a file of the log lacks its zeros, and the file its end",
        "verifying/rocketmq/files_inside._report", cut_by_number, "RMQDISK-39", (STORE,),
    ),
    Situation(
        "four files of the log lie in a folder in it", PUT_BACK,
        inside((0, 1, 2, 3)), "RMQDISK-39", (STORE,), step=put_back(3),
    ),
    Situation(
        "two packed files of the log lie in a folder in it", PUT_BACK,
        inside((1, 2), ".gz"), "RMQDISK-39", (STORE,),
    ),
    *(
        Situation(
            f"the log has a file in a folder in it{', packed as ' if end else ''}{end}",
            MOVE_OUT, copied_inside(end), "RMQDISK-39", (STORE,),
        )
        for end in PACK
    ),
    Situation(
        "a file in a folder in the log has a message less", MOVE_OUT,
        copied_inside(damaged_inside=[FIRST_BODY]), "RMQDISK-39", (STORE,),
    ),
    Situation(
        "a file in a folder in the log has a message more, and one less", MOVE_OUT,
        copied_inside(damaged=[FIRST_BODY], damaged_inside=[SECOND_BODY]),
        "RMQDISK-39", (STORE,),
    ),
    *(
        Situation(
            "a file in a folder in the log has a message more"
            f"{', packed as ' if end else ''}{end}",
            "verifying/rocketmq/files_inside._replace",
            copied_inside(end, damaged=[SECOND_BODY]), "RMQDISK-39", (STORE,),
        )
        for end in PACK
    ),
    Situation(
        "a file of the log lies in a folder of its name",
        "verifying/rocketmq/store_checks._renamed", in_its_own_folder, "DISK-1", (STORE,),
        step=put_back_from_its_folder,
    ),
    Situation(
        "later files of the log lie in another folder",
        "reading/joined_logs.how_to_join",
        over_two_folders(2, 3, 4), "RMQDISK-42", (STORE,),
        holds=(COMMIT_LOG, "data/other"),
    ),
    Situation(
        "files of the log lie in another folder, and one is linked back",
        "reading/joined_logs.how_to_join",
        over_two_folders(2, 3, linked=(2,)), "RMQDISK-42", (STORE,),
        holds=(COMMIT_LOG, "data/other"),
    ),
    Situation(
        "older files of the log lie in another folder",
        "reading/store_layouts._how_to_have_both 2",
        over_two_folders(0, 1), "RMQDISK-41", (STORE,),
        holds=(COMMIT_LOG, "data/other"),
    ),
    Situation(
        "a folder with copies has a file that the log lost",
        "reading/store_layouts._how_to_have_both 1",
        lost_with_backup, "RMQDISK-41", (STORE,),
        holds=(COMMIT_LOG, "data/other"),
    ),
    Situation(
        "a file of topics is zeros, and the state that was being written is whole",
        "verifying/rocketmq/config_checks._from_written",
        with_config(topics__json=NOT_JSON, topics__json__tmp=TOPICS),
        "RMQDISK-43", (STORE,), step=topics_as_written,
    ),
    Situation(
        "a file of topics and its backup are zeros", "verifying/rocketmq/config_checks._judge 1",
        with_config(topics__json=NOT_JSON, topics__json__bak=NOT_JSON), "RMQDISK-43", (STORE,),
        holds=(COMMIT_LOG,),
    ),
    Situation(
        "a file of topics is zeros, and its backup is whole",
        "verifying/rocketmq/config_checks._judge 2",
        with_config(topics__json=NOT_JSON, topics__json__bak=TOPICS), "RMQDISK-43", (STORE,),
        step=topics_from_backup,
    ),
    Situation(
        "the first file of a log is not there", "verifying/rocketmq/key_checks.KeyChecks.finish",
        without_first_log, "RMQDISK-28", (STORE,),
    ),
    Situation(
        "the first file of a log is not there",
        "verifying/rocketmq/queue_checks.QueueChecks.finish",
        without_first_log, "RMQDISK-37", (STORE,),
    ),
    Situation(
        "the log lies in the store itself",
        "verifying/rocketmq/missing_log._put_in",
        log_in_the_store, "RMQDISK-23", (STORE,),
    ),
    Situation(
        "the queues are gone", "verifying/rocketmq/queue_checks._if_deleted",
        without("consumequeue"), "RMQDISK-37", (STORE,), holds=(COMMIT_LOG,),
    ),
    Situation(
        "the queues of a topic are gone", "verifying/rocketmq/queue_checks._if_deleted",
        without_a_topic, "RMQDISK-37", (STORE,), holds=(COMMIT_LOG,),
    ),
    Situation(
        "a file of a queue is empty", "verifying/rocketmq/queue_checks.QueueChecks._report_empty",
        empty_queue_file, "RMQDISK-35", (STORE,), holds=(COMMIT_LOG,),
    ),
    Situation(
        "the index files are gone", "verifying/rocketmq/store_checks._compare_index_time",
        without_index, "RMQDISK-21", (STORE,),
    ),
    Situation(
        "a file of a log lies in lost+found", "verifying/unnamed_files.steps_for",
        found_file, "RMQDISK-41", ("data/lost+found",), holds=("data/lost+found",),
    ),
)  # fmt: skip
"""The situations of RocketMQ's files."""
