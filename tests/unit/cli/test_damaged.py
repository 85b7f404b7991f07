# SPDX-License-Identifier: Apache-2.0
"""`lookup` and `dump` of directories that are damaged, at random too, under any profile."""

import json
import shutil
import struct
from pathlib import Path
from random import Random

import pytest

from segproof_harness import cli
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.laws.borders.log_files import offset_entries
from segproof_model.releases import RELEASES
from segproof_tests.printed_rows import Capsys
from segproof_tests.small_logs import batch

PARTITIONS = [partition_of(scenario) for scenario in scenarios()]
KAFKA = ["segproof", *(name for name in RELEASES if name.startswith("kafka-"))]
EXTREME = (b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7))
ENTRIES = {".index": struct.Struct(">ii"), ".timeindex": struct.Struct(">qi")}
RUNS = 36


def damage(path: Path, random: Random) -> None:
    """Change a file as a disk, a crash or a hand may do it."""
    data = bytearray(path.read_bytes())
    at = random.randrange(len(data) + 1)
    kind = random.choice((0, 1, 2, 2, 2, 3, 4, 5, 6))
    if kind == 0 and at < len(data):
        data[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        data[at : at + 8] = random.choice((*EXTREME, random.randbytes(8)))
    elif kind == 2:  # the head of a file, where its first batch says how long it is
        at = random.randrange(24)
        data[at : at + 4] = random.choice(EXTREME)[:4]
    elif kind == 3:
        del data[at:]
    elif kind == 4:
        del data[at : at + random.randrange(200)]
    elif kind == 5:
        data += random.choice((bytes(100), random.randbytes(100)))
    else:
        path.unlink()
        return
    path.write_bytes(data)


def questions(folder: Path, random: Random) -> list[str]:
    """Return what to ask `lookup`: what the indexes have, and what lies beside it and far away."""
    asked = []
    for option, suffix in (("--offset", ".index"), ("--timestamp", ".timeindex")):
        found = [0, -1, (1 << 63) - 1]
        for path in sorted(folder.glob(f"*{suffix}")):
            data = path.read_bytes()
            size = ENTRIES[suffix].size
            base = int(path.stem) if suffix == ".index" else 0
            found += [
                base + key
                for key, _ in ENTRIES[suffix].iter_unpack(data[: len(data) // size * size])
            ]
        for target in random.choices(found, k=4):
            near = target + random.randrange(-1, 20)
            asked += [option, str(max(-(1 << 63), min(near, (1 << 63) - 1)))]
    return asked


@pytest.mark.parametrize("profile", KAFKA)
def test_an_index_leads_past_damage(profile: str, tmp_path: Path, capsys: Capsys) -> None:
    """A batch behind one whose size is wrong is found where the index leads to it."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    batches = [*map(batch, range(3))]
    wrong = batches[0][:8] + b"\x7f" + batches[0][9:]
    (folder / f"{0:020d}.log").write_bytes(wrong + batches[1] + batches[2])
    (folder / f"{0:020d}.index").write_bytes(offset_entries((1, len(wrong))))
    (folder / f"{0:020d}.timeindex").write_bytes(b"")
    command = ["lookup", str(folder), "--offset", "2", "--profile", profile, "--explain"]
    assert 0 == cli.run([*command, "--format", "jsonl"])
    row = json.loads(capsys.readouterr().out)
    assert (2, 2 * len(wrong)) == (row["batch_base_offset"], row["batch_position"])
    assert 2 == row["steps"][-1]["facts"]["batches"]


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_files_beyond_memory(suffix: str, tmp_path: Path, capsys: Capsys) -> None:
    """A sparse file of a terabyte is refused before it is read, and takes no memory."""
    for one in (".log", *ENTRIES):
        (tmp_path / f"{0:020d}{one}").write_bytes(b"")
    with (tmp_path / f"{0:020d}{suffix}").open("wb") as file:
        file.truncate(1 << 40)
    options = ["--profile", "kafka-4.3.1"]
    for command in (["lookup", "--offset", "3", "--timestamp", "3"], ["dump"]):
        code = cli.run([command[0], str(tmp_path), *command[1:], *options])
        shown = "".join(capsys.readouterr())
        is_asked = suffix != ".txnindex" or command[0] == "dump"
        assert (int(is_asked), is_asked) == (code, "is not read into memory" in shown)


@pytest.mark.slow
def test_what_verify_calls_sound_is_read(tmp_path: Path, capsys: Capsys) -> None:
    """Where `verify` finds no defect, `lookup` and `dump` fail for none."""
    sound = 0
    for run in range(RUNS // 3):
        random = Random(run)
        folder = tmp_path / f"{run}-0"
        shutil.copytree(random.choice(PARTITIONS), folder, copy_function=shutil.copyfile)
        for path in sorted(folder.glob("*"))[-4:]:
            if path.suffix in (".log", *ENTRIES):
                with path.open("ab") as file:
                    file.write(bytes(random.choice((0, 12, 24, 600))))
        if 0 == cli.run(["verify", str(folder)]):
            sound += 1
            for command in (["lookup", *questions(folder, random)], ["dump"]):
                code = cli.run([command[0], str(folder), *command[1:]])
                assert 0 == code, f"run {run}: {capsys.readouterr().err}"
        capsys.readouterr()
        shutil.rmtree(folder)
    assert sound


@pytest.mark.slow
def test_damaged_directories(tmp_path: Path, capsys: Capsys) -> None:
    """Each verb ends with 0 or 1, or with 2 where no log is left, under each profile."""
    for run in range(RUNS):
        random = Random(run)
        folder = tmp_path / f"{run}-0"
        shutil.copytree(random.choice(PARTITIONS), folder, copy_function=shutil.copyfile)
        for _ in range(random.randrange(1, 4)):
            files = [
                path
                for path in sorted(folder.iterdir())
                if path.suffix in (".log", *ENTRIES, ".txnindex")
            ]
            if files:
                damage(random.choice(files), random)
        profile = random.choice(KAFKA)
        explain = ["--explain"] * random.randrange(2)
        commands = [["lookup", *questions(folder, random), *explain], ["dump"]]
        for command in commands[: 1 + (run % 4 == 0)]:
            code = cli.run([command[0], str(folder), *command[1:], "--profile", profile])
            shown = capsys.readouterr()
            allowed = (0, 1) if any(folder.glob("*.log")) else (0, 1, 2)
            assert code in allowed, f"run {run}, {profile}: {shown.err}"
        shutil.rmtree(folder)
