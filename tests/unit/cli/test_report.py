# SPDX-License-Identifier: Apache-2.0
"""The page of `report`: it says what `verify` says, runs nothing, and stays small."""

import os
import re
import shutil
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from segproof.findings import Summary
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import ROCKETMQ
from segproof_harness.reports.page import (
    FRAME_BYTES,
    PAGE_BYTES_MAX,
    TABLE_BYTES,
    Made,
    PageReport,
)
from segproof_harness.reports.verdicts import WHOLE
from segproof_tests.partition_files import batches_of, copied_partition, name_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import state_of

NAME = "<script>alert('x')<script>&\"-0"


class Page(HTMLParser):
    """The texts of a page, and its tags; it must be well formed."""

    VOID = frozenset({"meta", "br", "rect", "path", "line", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert [] == self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Take its end."""
        if tag not in self.VOID:
            assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        """Take text."""
        self.words += data


def report(target: Path, *arguments: str, code: int = 1) -> Page:
    """Write a page, and read it."""
    out = target / "page.html"
    assert code == cli.run(["report", *arguments, "--out", str(out)])
    data = out.read_bytes()
    assert len(data) < PAGE_BYTES_MAX
    assert ["page.html"] == os.listdir(target)
    return Page(data.decode())


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Return the directory of the page."""
    target = tmp_path / "pages"
    target.mkdir()
    return target


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a data directory: a partition with a damaged batch, of a hostile name."""
    folder = tmp_path / "disk"
    folder.mkdir()
    partition = copied_partition("plain", folder)
    log = partition / name_of(60, ".log")
    with log.open("r+b") as file:
        file.seek(25310)
        file.write(b"\x7f")  # the size of the batch
        file.seek(30000)
        file.write(b"oops")
    partition.rename(folder / NAME)
    return folder


def test_a_page_says_what_verify_says(disk: Path, pages: Path, capsys: Capsys) -> None:
    """Verdict, cause, and commands; a picture with its pieces; bytes; what a recovery deletes."""
    before = state_of(disk)
    page = report(pages, str(disk))
    assert before == state_of(disk)
    capsys.readouterr()
    assert 1 == cli.run(["verify", str(disk), "--no-notes"])
    shown = capsys.readouterr().out
    verdict, head, *details = shown.splitlines()
    assert verdict.split(": ", 2)[0] in page.words
    assert verdict.rpartition(": ")[2] in page.words
    assert head.rpartition(".log: byte 25302: ")[2] in page.words
    consumers, hint = (line.strip().split(maxsplit=1)[1] for line in details[2:4])
    assert consumers in page.words
    assert hint.replace("`", "") in page.words
    assert 2 == sum(line.startswith("    segproof ") for line in details)
    for line in details:
        assert not line.startswith("    segproof ") or line.strip() in page.words
    assert "DUMP-6: Only a preallocated tail of zeros" in page.words
    assert "It also deletes all segments behind it. It looks at no segment" in page.words
    assert "bytes 0 to 25301: 2 batches" in page.words
    assert "22 batches, with 90 records, from byte 39643 on, offsets 72 to 161" in page.words
    assert "14341 bytes in 1 place, with up to 6 offsets" in page.words
    assert re.search(r"25296  .*00 00 00 00 00 00 00 42 7f 00", page.words)
    assert "base_offset 66 25302 to 25309" in page.words
    assert "size 2130720761 25310 to 25313" in page.words
    assert "record_count 6 25359 to 25362" in page.words
    drawn = [one["fill"] for tag, one in page.tags if tag == "rect" and "x" in one and "y" in one]
    bar = [fill for fill in drawn if fill is not None]
    assert ["url(#p-sound)", "url(#p-broken)", "url(#p-sound)"] == bar[:3]


def test_a_batch_that_its_checksum_proves_is_drawn_as_mended(disk: Path, pages: Path) -> None:
    """Only its size is wrong: a recovery deletes it, and a salvage keeps it."""
    log = next(disk.iterdir()) / name_of(60, ".log")
    with log.open("r+b") as file:
        file.seek(30000)
        file.write((copied_partition("plain", disk.parent) / log.name).read_bytes()[30000:30004])
    page = report(pages, str(disk))
    assert "mended: only the size or the magic is wrong: 14341 bytes in 1 place" in page.words
    assert "deletes, though the checksum proves it1 batch" in page.words.replace("\n", "")
    assert any("url(#p-mended)" == one.get("fill") for _, one in page.tags)


def test_a_map_knows_the_next_segment_as_verify_does(disk: Path, pages: Path) -> None:
    """It says which offsets a last batch has whose base offset is wrong beside its size."""
    log = next(disk.iterdir()) / name_of(60, ".log")
    whole = (copied_partition("plain", disk.parent) / log.name).read_bytes()
    last = len(whole) - len(batches_of(whole)[-1])
    log.write_bytes(
        whole[: last + 1] + b"\1" + whole[last + 2 : last + 8] + b"\x7f" + whole[last + 9 :]
    )
    assert "1 batch with a wrong size" in next(one.message for one in verify(disk) if one.is_defect)
    page = report(pages, str(disk))
    assert "deletes, though the checksum proves it1 batch" in page.words.replace("\n", "")


def test_a_page_runs_nothing_and_loads_nothing(disk: Path, pages: Path) -> None:
    """A name of a directory stays text, and each address is one inside of the page."""
    page = report(pages, str(disk))
    assert NAME in page.words
    assert not {"script", "img", "link", "iframe", "a"} & {tag for tag, _ in page.tags}
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on")} | {"src", "href"} & names
    text = (pages / "page.html").read_text(encoding="utf-8")
    assert "http" not in unescape(text.replace("http-equiv", ""))
    assert not re.search(r"url\((?!#)|@import", text)


def test_a_small_damage_in_a_long_file_is_drawn(disk: Path, pages: Path) -> None:
    """One broken batch has a column of its own in a log of 1 GiB."""
    log = next(disk.iterdir()) / name_of(60, ".log")
    os.truncate(log, 1 << 30)
    page = report(pages, str(log.parent), "--law", "DUMP-6")
    bars = [one for tag, one in page.tags if tag == "rect" and one.get("fill") == "url(#p-broken)"]
    assert ["0.42%"] == [one["width"] for one in bars if "%" in str(one["width"])]


@pytest.mark.parametrize("beyond", ["partitions", "files"])
def test_a_page_of_much_damage_stays_small(disk: Path, beyond: str) -> None:
    """What has no room is counted: every cause is on the page, or among those left out."""
    summaries: list[Summary] = []
    found = [one for one in verify(disk, on_summary=summaries.append) if one.is_defect]
    written: list[str] = []
    command = f"segproof report {'<&> ' * 9999}"
    made = Made("0", command, "now", WHOLE, False, "segproof verify <all>")
    page = PageReport(written.append, {}, made)
    for number in range(1000):
        for one in found:
            path = one.path if beyond == "partitions" else f"{one.path}{'&' * 400}{number}"
            page.finding(replace(one, path=path))
        if beyond == "partitions":
            page.summary(replace(summaries[-1], path=f"{'<&>' * 60}-{number}"))
    if beyond == "files":
        page.summary(summaries[-1])
    page.end()
    (text,) = written
    assert len(text.encode()) < PAGE_BYTES_MAX
    read = Page(text)
    left_out = re.search(r"KB\. (\d+) causes had no room", read.words)
    assert left_out is not None
    shown = sum(tag == "article" for tag, _ in read.tags)
    assert 20 < shown
    assert 1000 * len(found) == shown + int(left_out[1])
    assert "All of them:\nsegproof verify <all>\n" in read.words


def test_what_has_no_room_is_listed_by_a_command_with_all_options(
    disk: Path, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options that stood behind --out were once left out of it."""
    monkeypatch.setattr("segproof_harness.reports.page.PAGE_BYTES_MAX", FRAME_BYTES + TABLE_BYTES)
    page = report(pages, str(disk), "--deep", "--law", "dump-6")
    assert f"All of them:\nsegproof verify {disk} --deep --law DUMP-6\n" in page.words


def test_a_store_is_drawn_too(tmp_path: Path, pages: Path) -> None:
    """A damaged message of RocketMQ is a broken piece between sound ones."""
    store = shutil.copytree(ROCKETMQ / "small-5.5.1" / "store", tmp_path / "store")
    (log,) = (store / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(int.from_bytes(file.read(4), "big") + 92)
        file.write(b"XXXX")
    page = report(pages, str(store))
    assert "Damage map of" in page.words
    assert re.search(r"sound: \d+ bytes in 2 places", page.words)
    assert re.search(r"broken: \d+ bytes in 1 place", page.words)
    assert "A recovery that reaches this place" in page.words


def test_sound_files_give_a_page_and_exit_code_0(tmp_path: Path, pages: Path) -> None:
    """A later page takes the place of an older one."""
    folder = copied_partition("compacted", tmp_path)
    for _ in range(2):
        assert "sound" in report(pages, str(folder), "--no-notes", code=0).words


def test_a_page_of_what_has_changed(disk: Path, pages: Path, capsys: Capsys) -> None:
    """The page says so, and its command names the time; what is left out is counted."""
    copied_partition("compacted", disk)
    for path in disk.glob("*/*"):
        os.utime(path, (0, 0) if path.parent.name == NAME else None)  # copies keep old times
    page = report(pages, str(disk), "--since", "2h", code=0)
    assert "not checked: 9 segments of 1 partition older than 20" in capsys.readouterr().err
    assert "BATCH-3" not in page.words
    assert "compacted-0" in page.words
    assert re.search(r"checkedheaders .*; only files changed since 20\S+Z checked", page.words)
    assert re.search(r"--out \S+ --since 20\S+Z\s", page.words)
    page = report(pages, str(disk / NAME), "--since", "2h", code=0)
    assert "nothing was checked" in page.words


@pytest.fixture
def stored(disk: Path, tmp_path: Path, capsys: Capsys) -> Path:
    """Return the file to which the results about the disk were written."""
    capsys.readouterr()
    assert 1 == cli.run(["verify", str(disk), "--law", "dump-6", "--format", "jsonl"])
    path = tmp_path / "night.jsonl"
    path.write_text(capsys.readouterr().out)
    return path


def test_a_page_of_stored_results(disk: Path, pages: Path, stored: Path) -> None:
    """It says what the page of the files says, without the files; maps and bytes it has none."""
    of_files = report(pages, str(disk), "--law", "DUMP-6")
    rows = re.findall("<d[td]>.*?</d[td]>", (pages / "page.html").read_text())
    shutil.rmtree(disk)
    page = report(pages, "--from", str(stored))
    text = (pages / "page.html").read_text()
    told = re.findall("<d[td]>.*?</d[td]>", text)
    others = [one for one in told if one not in rows and not one.startswith("<dd>20")]
    assert 1 == len(others)
    assert others[0].startswith("<dd>not read; the findings are those in ")
    for words in ("DUMP-6: Only", "22 sound batches", "only DUMP-6 checked", "consumers see"):
        assert words in of_files.words
        assert words in page.words
    assert "figure" in {tag for tag, _ in of_files.tags}
    assert "figure" not in {tag for tag, _ in page.tags}
    assert "The files were not read for it: their damage maps" in page.words
    assert f"page.html --from {stored}\n" in page.words


@pytest.mark.parametrize(
    ("number", "old", "new", "words"),
    [
        (1, b'"law": ', b'"lav": ', "line 1 has no field law"),
        (1, b'"severity": "', b'"severity": "x', "line 1: severity is 'xerror'"),
        (1, b'"position": ', b'"position": 9223372036854775808, "x": ', "line 1: position is 92"),
        (1, b'"message": ', b'"message": [[]], "x": ', "line 1: message is list"),
        (1, b'"message": "', (b'"message": " further places in this file break the same law",'
            b' "actual": "x", "x": "'), "line 1: actual is 'x' and not a number of places"),
        (1, b"{", b"[" * 99_999, "line 1 is no JSON"),
        (1, b"{", b"\xff", "line 1 is no JSON"),
        (1, b"{", b" " * (1 << 20) + b"{", "line 1 has more than 1048576 bytes"),
        (2, b'"cause"', b'"course"', "line 2: verify writes no type 'course'"),
        (3, b'"schema_version": 1', b'"schema_version": 2', "line 3: schema_version 2 is not 1"),
        (3, b'"deep": false', b'"deep": 0', "line 3: laws, position, deep or since"),
        (3, b'"laws": ["', b'"laws": [0, "', "line 3: laws, position, deep or since"),
        (3, b"}", b"", "line 3 is no JSON"),
        (1, b"{", b'{"type": "cause", "schema_version": 1,', "line 3 has a verdict without its"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_results_is_refused(
    number: int,
    old: bytes,
    new: bytes,
    words: str,
    stored: Path,
    pages: Path,
    capsys: Capsys,
) -> None:
    """The complaint names the line, and no page is written."""
    lines = stored.read_bytes().splitlines(keepends=True)
    assert 3 == len(lines)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    stored.write_bytes(b"".join(lines))
    assert 2 == cli.run(["report", "--from", str(stored), "--out", str(pages / "page.html")])
    assert f"segproof: {stored}: {words}" in capsys.readouterr().err
    assert [] == os.listdir(pages)


def test_stored_results_are_not_verified_again(stored: Path, pages: Path, capsys: Capsys) -> None:
    """Options that say how to verify are refused, as are two runs in one file, or nothing."""
    lines = stored.read_text()
    mixed, empty = stored.with_name("mixed"), stored.with_name("empty")
    mixed.write_text(lines + lines.replace('"deep": false', '"deep": true'))
    empty.touch()
    for arguments, words in (
        (["--from", str(stored), "--deep"], "--deep does not go with --from"),
        (["--from", str(stored), str(pages)], "not both"),
        ([], "give a PATH to verify, or --from"),
        (["--from", str(pages)], "is no regular file"),
        (["--from", "-"], "- is no regular file: it is read twice, so a pipe does not do"),
        (["--from", str(pages / "missing")], "no such file"),
        (["--from", str(mixed)], "line 6 is of a run with other options"),
        (["--from", str(empty)], "holds no finding and no summary"),
    ):
        assert 2 == cli.run(["report", *arguments, "--out", str(pages / "page.html")])
        assert words in capsys.readouterr().err
    assert [] == os.listdir(pages)


def test_a_page_replaces_nothing_but_a_page(tmp_path: Path, capsys: Capsys) -> None:
    """Neither a file that is no page, nor anything in or beside what is checked, is written."""
    folder = copied_partition("compacted", tmp_path)
    other = tmp_path / "other.html"
    other.write_text("mine")
    before = state_of(tmp_path)
    for path, out in (
        (folder, other),
        (folder, folder / "page.html"),
        (folder / name_of(0, ".log"), folder / "page.html"),
        (folder, tmp_path / "missing" / "page.html"),
        (tmp_path / "nothing", tmp_path / "page.html"),
        (folder, Path(os.devnull)),
    ):
        assert 2 == cli.run(["report", str(path), "--out", str(out)])
        assert 1 == capsys.readouterr().err.count("segproof: ")
    assert before == state_of(tmp_path)
