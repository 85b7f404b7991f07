# SPDX-License-Identifier: Apache-2.0
"""Bulk lookups in one process: what they compare, and that planted defects turn them red."""

import random
import shlex
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from segproof.errors import CorruptIndexError
from segproof.kafka import LogSegments, RecordFile
from segproof_harness import cli
from segproof_model.kafka.format.log_segment import LogSegment as ModelLogSegment
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.rocketmq.format.key_hash import index_key_hash
from segproof_spark.cli import app
from segproof_spark.lookups import kafka_indexes, kafka_logs
from segproof_spark.lookups.comparison import Comparison, Unit
from segproof_spark.lookups.kafka_indexes import KINDS, Index, draw_index, index_of_bytes
from segproof_spark.lookups.random_numbers import Draw
from segproof_spark.lookups.ranges import INT64_MAX, INT64_MIN, ranges_of_keys, rows_of
from segproof_spark.lookups.real_files import real_units
from segproof_spark.lookups.rocketmq_keys import hashes_of, keys_of_hashes
from segproof_spark.lookups.structures import STRUCTURES, drawn_units, run_unit, tasks_of

COUNT = 1000

DEFECTS = '''
import numpy as np
from segproof.errors import CorruptIndexError
from segproof.kafka import LogSegment, OffsetIndex, TimeIndex
from segproof.rocketmq import IndexFile


class Below(OffsetIndex):
    """Planted: an exact match is passed over."""

    def lookup_many(self, target_offsets):
        return super().lookup_many(np.maximum(target_offsets, -2**63 + 1) - 1)


class Wrapped(OffsetIndex):
    """Planted: targets beyond 32 bits wrap."""

    def lookup_many(self, target_offsets):
        distances = (target_offsets - self.base_offset).astype(np.int32).astype(np.int64)
        return super().lookup_many(np.clip(distances, 0, None) + self.base_offset)


class Zero(TimeIndex):
    """Planted: what lies below all keys finds timestamp 0."""

    def lookup_many(self, target_timestamps):
        timestamps, offsets = super().lookup_many(target_timestamps)
        return np.maximum(timestamps, 0), offsets


class Oldest(IndexFile):
    """Planted: the oldest entries come first."""

    def select_phy_offset_many(self, keys, max_num, begin, end):
        starts, offsets = super().select_phy_offset_many(keys, max_num, begin, end)
        for low, high in zip(starts[:-1], starts[1:]):
            offsets[low:high] = offsets[low:high][::-1]
        return starts, offsets


class Exclusive(IndexFile):
    """Planted: the end of the window is exclusive."""

    def select_phy_offset_many(self, keys, max_num, begin, end):
        return super().select_phy_offset_many(keys, max_num, begin, end - 1)


class NextBatch(LogSegment):
    """Planted: the last offset of a batch is looked for behind it."""

    def read_many(self, start_offsets):
        return super().read_many(np.minimum(start_offsets, 2**63 - 2) + 1)


class After(LogSegment):
    """Planted: a record of the very timestamp is passed over."""

    def find_offset_by_timestamp_many(self, timestamps, starting_offset):
        return super().find_offset_by_timestamp_many(
            np.minimum(timestamps, 2**63 - 2) + 1, starting_offset
        )


class Raising(TimeIndex):
    """Planted: a search of many fails."""

    def lookup_many(self, target_timestamps):
        raise ArithmeticError("planted")


class RefusingIndex(OffsetIndex):
    """Planted: a sound file is called damaged."""

    def __init__(self, *rest, **more):
        raise CorruptIndexError("planted")


class RefusingSegment(LogSegment):
    """Planted: a sound segment is called damaged."""

    @classmethod
    def open(cls, *rest, **more):
        raise CorruptIndexError("planted")
'''


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module with planted defects."""
    name = f"planted_{random.getrandbits(40):x}"
    (tmp_path / f"{name}.py").write_text(DEFECTS)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def run(
    structure: str, indexes: Sequence[int], count: int = COUNT, subject: str = ""
) -> list[Comparison]:
    """Do small units."""
    return [run_unit(Unit(structure, 7, index, count, subject=subject)) for index in indexes]


# --- what is compared


@pytest.mark.parametrize("structure", STRUCTURES)
def test_generated_units_agree(structure: str) -> None:
    """Every size of generated index and log; the model and the single lookup are asked too."""
    for comparison in run(structure, [0, 2, 5, 8]):
        assert ([], 0) == (comparison.findings, comparison.differing)
        assert comparison.lookups >= COUNT
        least = 300 if structure != "partition-log" else 10  # some logs have one batch
        assert comparison.by_single >= least
        assert comparison.by_model >= least
        assert comparison.worker_peak_bytes > 1 << 20


def test_a_full_index_agrees() -> None:
    """An index of 10 MiB: each of its keys and their neighbours, whatever was asked for."""
    (result,) = run("offset-index", [14])
    assert 1_310_720 == result.entries
    assert result.lookups >= 3 * 1_310_720
    assert 0 == result.differing


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_unit_is_the_same_each_time(structure: str) -> None:
    """A unit depends on nothing but its name; another number or seed is another unit."""

    def told(unit: Unit) -> tuple[int, ...]:
        comparison = run_unit(unit)
        return comparison.entries, comparison.lookups, comparison.by_model, comparison.by_single

    unit = Unit(structure, 3, 2, COUNT)
    once = told(unit)
    assert once == told(unit)
    assert once != told(replace(unit, seed=4))


def test_draws_never_change() -> None:
    """The numbers of a name are the same with every numpy: units of old findings stay findable."""
    assert [8391, 6318, 5311] != Draw("other").below(10_000, 3).tolist()
    assert Draw("name", 1).below(10_000, 3).tolist() == Draw("name", 1).below(10_000, 3).tolist()


def test_ranges_are_the_definition() -> None:
    """Each target finds the greatest key not above it, as if all keys were looked at."""
    keys = np.array([3, 4, 9, 2**31, INT64_MAX - 1], np.int64)
    values = np.arange(5) * 10
    ranges = ranges_of_keys(keys, (keys, values), (-7, -8))
    borders = [INT64_MIN, -1, 0, 2, 3, 4, 5, 8, 9, 10, INT64_MAX]
    seen = set()
    for asked in ranges.blocks(Draw("test"), borders, 5000):
        for target, found in zip(asked.targets.tolist(), rows_of(asked.expected), strict=True):
            below = [place for place, key in enumerate(keys.tolist()) if key <= target]
            right = (int(keys[below[-1]]), int(values[below[-1]])) if below else (-7, -8)
            assert right == found
            seen.add(target)
    assert seen >= {*borders, *keys.tolist(), *(keys - 1).tolist(), *(keys + 1).tolist()}


def test_half_of_the_blocks_is_shuffled() -> None:
    """Rising blocks and shuffled ones take turns."""
    keys = np.arange(100, dtype=np.int64) * 7
    blocks = list(ranges_of_keys(keys, (keys,), (0,)).blocks(Draw("x"), [5, 6, 7], 10**6))
    rising = [bool(np.all(np.diff(asked.targets) >= 0)) for asked in blocks]
    assert rising == [number % 2 == rising.index(True) for number in range(len(blocks))]
    assert len(blocks) > 4


def test_hashes_are_those_of_the_model() -> None:
    """The sum of powers is Java's hash, of texts that collide and of the one without a value."""
    texts = ["", "a", "T#k", "AaAa", "BBBB", "polygenelubricants", "C0#AaBB", "~" * 40]
    keys = np.array([text.encode() for text in texts])
    assert [index_key_hash(text) for text in texts] == hashes_of(keys).tolist()


def test_a_key_is_made_for_every_hash() -> None:
    """Real index files keep hashes alone: a text can be made that has one."""
    hashes = np.array([0, 1, 30, 31, 65599, 2**31 - 2, 2**31 - 1, *Draw("h").below(2**31, 50)])
    made = [index_key_hash(key.decode()) for key in keys_of_hashes(hashes).tolist()]
    assert hashes.tolist() == made


def test_generated_indexes_reach_the_borders() -> None:
    """Empty and full ones, zero tails, bases and keys beside the borders of 32 and 64 bits."""

    def drawn(structure: str) -> list[Index]:
        return [
            draw_index(Unit(structure, 0, number, 1), Draw("b", number)) for number in range(60)
        ]

    images, times = drawn("offset-index"), drawn("time-index")
    sizes = {image.entries for image in images}
    assert {0, 1, 1_310_720} <= sizes
    assert any(len(image.data) > 8 * image.entries for image in images)
    assert {2**31 - 1, 2**31, 2**63 - 2**31} <= {image.base_offset for image in images}
    assert any(image.entries and image.keys[-1] == 2**31 - 1 for image in images)
    assert any(image.entries and image.keys[-1] == 2**63 - 1 for image in times)
    for image in (*images, *times):
        assert image.increases
        again = index_of_bytes(image.kind, image.base_offset, image.data)
        assert np.array_equal(image.keys, again.keys)
        assert np.array_equal(image.values, again.values)


def test_units_have_the_shares() -> None:
    """A thousand million lookups are cut as the shares say, none is lost, and tasks keep all."""
    units = drawn_units(10**9)
    for name, structure in STRUCTURES.items():
        part = sum(unit.count for unit in units if unit.structure == name)
        assert abs(part - structure.share * 10**9) < 2
    assert len(units) == len({(unit.structure, unit.index) for unit in units})
    assert 10**9 <= sum(unit.count for unit in units) < 10**9 + 4
    tasks = tasks_of(units, 2)
    assert sorted(map(repr, units)) == sorted(repr(unit) for task in tasks for unit in task)
    assert len(tasks) >= 8
    assert 1 == len(tasks_of(units[:1], 2))


# --- planted defects


@pytest.mark.parametrize(
    ("structure", "defect", "law"),
    [
        ("offset-index", "Below", "OFFIDX-11"),
        ("offset-index", "Wrapped", "OFFIDX-11"),
        ("time-index", "Zero", "TIMEIDX-10"),
        ("time-index", "Raising", "TIMEIDX-10"),
        ("index-file", "Oldest", "RMQIDX-31"),
        ("index-file", "Exclusive", "RMQIDX-31"),
        ("partition-log", "NextBatch", "LOG-6"),
        ("partition-log", "After", "LOG-15"),
    ],
)
def test_a_planted_defect_turns_its_kind_red(
    planted: str, structure: str, defect: str, law: str
) -> None:
    """Each finding names the law, both answers, and a command that shows it again."""
    (comparison,) = run(structure, [3], subject=f"{planted}:{defect}")
    assert comparison.differing >= 1
    assert comparison.lookups >= COUNT
    finding = comparison.findings[0]
    assert (law, "error", structure) == (finding.law, finding.severity, finding.structure)
    assert finding.expected != finding.actual
    words = shlex.split(finding.reproduce)
    assert ["segproof", "spark", "lookups"] == words[:3]
    done = CliRunner().invoke(app, [*words[2:], "--format", "jsonl"])
    assert 1 == done.exit_code, done.stderr
    assert f'"{law}"' in done.stdout


def test_a_wrong_segment_below_an_offset_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which segment a read begins with is compared too."""
    monkeypatch.setattr(LogSegments, "floor_segment", LogSegments.lower_segment)
    (result,) = run("partition-log", [2])
    assert "LOG-1" in {finding.law for finding in result.findings}


def test_the_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the model said something else than the sweep, that would be a finding."""
    monkeypatch.setattr(
        ModelOffsetIndex, "lookup", lambda index, target: OffsetPosition(index.base_offset, 1)
    )
    (result,) = run("offset-index", [3])
    assert result.differing >= 100
    assert "the model's lookup" in result.findings[0].message


# --- real files


def real(place: Path, *structures: str) -> list[Comparison]:
    """Look up in every file of a place."""
    units = real_units([str(place)], structures or STRUCTURES, 20_000)
    return [run_unit(unit) for unit in units]


def test_real_files_agree_and_stay_as_they_are(partition: Path) -> None:
    """Indexes and the whole log; nothing is written, made or touched."""

    def state() -> list[tuple[str, bytes, int]]:
        inside = sorted(partition.iterdir())
        return [(one.name, one.read_bytes(), one.stat().st_mtime_ns) for one in inside]

    before = state()
    results = real(partition.parent)
    assert {"offset-index", "time-index", "partition-log"} == {
        result.unit.structure for result in results
    }
    assert 9 * 2 + 1 == len(results)
    for result in results:
        assert ([], []) == (result.findings, result.notes)
        assert result.lookups >= 1000
    assert before == state()


def test_real_key_indexes_agree() -> None:
    """Stores of RocketMQ: keys are made for the hashes that their index files hold."""
    with as_file(files("segproof_harness") / "data" / "rocketmq") as carried:
        results = real(carried, "index-file")
    assert len(results) >= 5
    for result in results:
        assert [] == result.findings
    assert sum(result.entries for result in results) > 20


def test_a_wrong_position_in_a_real_index_is_found(partition: Path) -> None:
    """By the definition of the index alone all is well: the table of batches says what is right."""
    index = partition / "00000000000000000252.index"
    data = bytearray(index.read_bytes())
    (position,) = np.frombuffer(data[-4:], ">i4").tolist()
    log_bytes = (partition / "00000000000000000252.log").stat().st_size
    assert position < log_bytes
    data[-4:] = np.array([log_bytes], ">i4").tobytes()
    index.write_bytes(data)
    assert not any(result.findings for result in real(partition, "offset-index"))
    (result,) = real(partition, "partition-log")
    assert result.findings
    command = shlex.split(result.findings[0].reproduce)
    assert 1 == CliRunner().invoke(app, command[2:]).exit_code


def test_keys_that_fall_are_compared_with_the_model_alone(partition: Path) -> None:
    """No definition but that of the probes says what a damaged index answers."""
    index = partition / "00000000000000000252.index"
    records = np.frombuffer(index.read_bytes(), KINDS["offset-index"].layout.dtype).copy()
    records["offset"][1] = 0
    index.write_bytes(records.tobytes())
    results = real(index)
    assert ["the keys do not increase: compared with the model alone"] == results[0].notes
    assert results[0].by_model == results[0].lookups > 0
    assert 0 == results[0].differing


def test_a_file_that_vanishes_is_a_finding(partition: Path) -> None:
    """The other units are done all the same."""
    units = real_units([str(partition)], STRUCTURES, 10_000)
    (partition / "00000000000000000252.index").unlink()
    results = [run_unit(unit) for unit in units]
    red = [result for result in results if result.findings]
    assert {"DISK-1"} == {one.law for result in red for one in result.findings}
    assert {"offset-index", "partition-log"} == {result.unit.structure for result in red}


def test_a_file_that_shrinks_is_a_finding() -> None:
    """A file that is shorter than its geometry says, and bytes that end before what was counted."""
    with as_file(files("segproof_harness") / "data" / "rocketmq") as carried:
        unit = real_units([str(carried)], ["index-file"], 10_000)[0]
        for geometry in ((10**9, 10), (0, 10**9)):
            comparison = run_unit(replace(unit, geometry=geometry))
            assert 1 == len(comparison.findings) == comparison.differing, comparison.notes
            assert "RMQIDX-31" == comparison.findings[0].law
            assert "the unit ends" in comparison.findings[0].message


def test_a_log_that_shrinks_is_a_finding(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that were there when the headers were read, and are gone when the records are."""
    (unit,) = real_units([str(partition)], ["partition-log"], 10_000)
    monkeypatch.setattr(RecordFile, "batches", lambda *rest: iter(()))
    comparison = run_unit(unit)
    assert ["DISK-1"] == [finding.law for finding in comparison.findings]
    assert "became shorter" in comparison.findings[0].message


def test_only_the_truth_may_be_left_out(
    partition: Path, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subject that refuses a sound file is a finding; a truth that cannot be told is a note."""
    for structure, law in (("offset-index", "OFFIDX-11"), ("partition-log", "LOG-6")):
        name = "RefusingIndex" if structure == "offset-index" else "RefusingSegment"
        unit = real_units([str(partition)], [structure], 10_000, subject=f"{planted}:{name}")[0]
        comparison = run_unit(unit)
        assert [law] == [finding.law for finding in comparison.findings]
        assert ([], 1) == (comparison.notes, comparison.differing)
        assert "CorruptIndexError('planted')" in comparison.findings[0].message

    def refuses(*rest: object) -> None:
        raise CorruptIndexError("unclear")

    monkeypatch.setattr(kafka_indexes, "index_of_bytes", refuses)
    comparison = run_unit(real_units([str(partition)], ["offset-index"], 10_000)[0])
    assert ([], ["not asked: unclear"]) == (comparison.findings, comparison.notes)


def test_a_damaged_log_is_asked_up_to_there(partition: Path) -> None:
    """Where the batches cannot be told any more, nothing is asked."""
    log = partition / "00000000000000000693.log"
    with log.open("r+b") as file:
        file.seek(8)
        file.write(b"\0\0\0\1")
    (result,) = real(partition, "partition-log")
    assert [] == result.findings
    assert "asked up to byte 0" in result.notes[0]


def test_headers_of_real_logs_are_read_beside_the_implementation(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the implementation's own reader of headers all is asked, and nothing is noted."""
    (unit,) = real_units([str(partition)], ["partition-log"], 2000)
    monkeypatch.delattr(kafka_logs, "BatchScan")
    assert ([], []) == (run_unit(unit).findings, run_unit(unit).notes)


def test_the_model_is_asked_in_real_logs(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few offsets and timestamps; if it said something else, that would be a finding."""
    (unit,) = real_units([str(partition)], ["partition-log"], 2000)
    comparison = run_unit(unit)
    assert (0, True) == (comparison.differing, 10 <= comparison.by_model < 40)
    with monkeypatch.context() as patched:
        patched.setattr(ModelLogSegment, "translate_offset", lambda *rest: None)
        found = run_unit(unit).findings
    assert "LOG-6" in {finding.law for finding in found}
    assert "the model's answer" in found[0].message
    monkeypatch.setattr(kafka_logs, "MODEL_BYTES", 1000)
    comparison = run_unit(unit)
    assert (0, 0) == (comparison.by_model, comparison.differing)
    assert ["not asked of the model: no segment below 1000 bytes"] == comparison.notes


def test_older_messages_are_asked_and_it_is_said() -> None:
    """The implementation reads their headers: a note says so, and the model is asked."""
    with as_file(files("segproof_harness") / "data" / "kafka" / "v1-gzip") as carried:
        (result,) = real(carried, "partition-log")
    assert (0, True) == (result.differing, result.by_model >= 10)
    assert "older messages, told by segproof's own reader" in result.notes[0]


def test_files_behind_a_url_agree(partition: Path) -> None:
    """Read through Arrow's file systems, by the same names but for the path."""
    here = real(partition)
    there = [
        run_unit(unit) for unit in real_units([partition.as_uri()], STRUCTURES, 20_000, seed=0)
    ]
    assert len(here) == len(there)
    for one, two in zip(here, there, strict=True):
        assert [] == two.findings
        assert one.lookups == two.lookups
        assert two.unit.path.startswith("file://")


# --- the command line


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--count", "many"], "--count 'many' is no number"),
        (["--count", "0"], "--count '0' is no number"),
        (["--count", "nan"], "--count 'nan' is no number"),
        (["--structure", "record-batch"], "no lookups in a structure 'record-batch'"),
        (["--index", "3"], "say of which --structure"),
        (["--subject", "a:B"], "say which with --structure"),
        (["--structure", "time-index", "--subject", "nowhere:B"], "no class 'nowhere:B'"),
        (["--structure", "time-index", "--subject", "json:loads"], "'json:loads' is no class"),
        (["--local", "--out", "x"], "neither --out nor --remote"),
        (["--out", "."], "--out .: there is something already"),
        (["--out", ""], "--out : names no place"),
    ],
)
def test_wrong_options_are_usage(wrong: list[str], words: str) -> None:
    """Exit 2 with a line that names the option, before Spark starts."""
    done = CliRunner().invoke(app, ["lookups", *wrong])
    assert 2 == done.exit_code
    assert words in done.stderr


def test_a_place_that_is_not_there_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, before Spark starts."""
    assert 2 == cli.run(["spark", "lookups", "no/such/path"])
    assert "no/such/path: no such file or directory\n" in capsys.readouterr().err


def test_a_place_without_indexes_is_usage(tmp_path: Path) -> None:
    """Nothing to look up in is no clean run."""
    done = CliRunner().invoke(app, ["lookups", "--local", str(tmp_path)])
    assert 2 == done.exit_code
    assert "no index and no log" in done.stderr


def test_figures_are_told() -> None:
    """A clean run ends with 0 and says how much of what was compared."""
    done = CliRunner().invoke(app, ["lookups", "--local", "--count", "2e4"])
    assert (0, "") == (done.exit_code, done.stdout)
    for structure in STRUCTURES:
        assert f"{structure}: 1 unit, " in done.stderr
    assert " lookups compared in " in done.stderr
    assert ": 0 differ" in done.stderr
