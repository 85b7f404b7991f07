# SPDX-License-Identifier: Apache-2.0
"""Each format of `verify`, and the page of `report`, tell the same findings at the same bytes."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from segproof.findings import Summary, Verdict
from segproof_harness.laws.borders import offset_index, partition_log, record_file, store
from segproof_harness.laws.borders.border import write_files
from segproof_harness.laws.borders.log_files import offset_entries, segment
from segproof_harness.reports import sarif
from segproof_tests.counted_again import make_partition
from segproof_tests.printed_rows import Capsys, jsonl, shown

Place = tuple[str, str, str, int | None]
"""Severity, law, path and byte."""
SEVERITIES = ("error", "warning", "note")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with damage at byte 0, at other bytes and at none."""
    folder: Path = tmp_path_factory.mktemp("formats") / "data"
    borders = [*offset_index.BORDERS[:6], record_file.BORDERS[0], *partition_log.BORDERS[-6:]]
    for number, border in enumerate(borders):
        write_files(border.unlawful, folder / f"b-{number}")
    for seed in (0, 98):
        make_partition(folder / f"drawn-{seed}", Random(seed))
    many = segment(b"", offset_entries(*((5, at) for at in range(150))))
    write_files(many, folder / "many-0")
    write_files(store.BORDERS[-12].unlawful, folder / "store")
    return folder


def found(rows: list[Any]) -> Counter[Place]:
    """Return the findings of `--format jsonl`."""
    return Counter(
        (row["severity"], row["law"], row["path"], row["position"]) for row in rows if "law" in row
    )


@pytest.fixture
def rows(data: Path, capsys: Capsys) -> list[Any]:
    """Return what `--format jsonl` writes."""
    return jsonl(capsys, "verify", data, code=1)


def test_the_directory_has_damage_of_each_kind(rows: list[Any]) -> None:
    """At byte 0, further on, and at no byte; of each severity; more places than are listed."""
    places = found(rows)
    assert set(SEVERITIES) == {severity for severity, *_ in places}
    assert {0, None} < {position for *_, position in places}
    assert len(places) > 100


def test_the_text_tells_each_finding(data: Path, rows: list[Any], capsys: Capsys) -> None:
    """With --all: severity, law, path and byte; the closing line has the sums."""
    text = shown(capsys, "verify", data, "--all", code=1)
    lines = re.findall(
        r"^(error|warning|note) (\S+) (\S+?)(?:: byte (\d+))?: (?!\d+ place)", text, re.MULTILINE
    )
    told = Counter((one, law, path, int(at) if at else None) for one, law, path, at in lines)
    assert found(rows) == told


def test_sarif_tells_each_finding(data: Path, rows: list[Any], capsys: Capsys) -> None:
    """The byte is a property and in the words, byte 0 too; the summaries are those of the rows."""
    (run,) = json.loads(shown(capsys, "verify", data, "--format", "sarif", code=1))["runs"]
    told: Counter[Place] = Counter()
    for result in run["results"]:
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        position, text = result["properties"]["position"], result["message"]["text"]
        words = re.match(r"byte (\d+): ", text)
        assert (None if words is None else int(words[1])) == position
        told[result["level"], result["ruleId"], unquote(uri.removeprefix("file://")), position] += 1
        assert result["ruleId"] == run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]
    assert found(rows) == told
    own = [row for row in rows if row.get("type") == "summary"]
    summaries = run["properties"]["summaries"]
    assert [{name: row[name] for name in summaries[0]} for row in own] == summaries
    assert 0 == run["properties"]["summariesLeftOut"]


def _places(rows: list[Any]) -> Counter[tuple[str, str]]:
    """Return how many places there are of each severity in each file, those only counted too."""
    places: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if "law" in row:
            more = re.match(r"\d+ further places", row["message"])
            places[row["severity"], row["path"]] += int(row["actual"]) if more else 1
    return places


def test_junit_counts_each_place(data: Path, rows: list[Any], capsys: Capsys) -> None:
    """A case has the number of its places and the first of their bytes."""
    tree = ElementTree.fromstring(shown(capsys, "verify", data, "--format", "junit", code=1))
    told: Counter[tuple[str, str]] = Counter()
    bytes_of: dict[tuple[str, str, str], set[int]] = {}
    for severity, law, path, position in found(rows):
        bytes_of.setdefault((severity, law, path), set()).update(
            () if position is None else (position,)
        )
    for case in tree.iter("testcase"):
        (outcome, *_), name = [*case] or [None], case.get("name") or ""
        if outcome is None:
            continue
        text = outcome.text or ""
        severity = text.partition(":")[0]
        laws, _, path = name.rpartition(" ")
        count, _, first = re.search(
            r"^places: (\d+)(, the first at ([\d, ]+))?$", text, re.M
        ).groups()  # type: ignore[union-attr]
        told[severity, path] += int(count)
        starts = [int(one) for one in first.split(", ")] if first else []
        own = [bytes_of.get((severity, law, path), set()) for law in laws.split(", ")]
        if path.endswith(".index") or len(own) == 1:
            assert sorted(set().union(*own))[:3] == starts
    # Each index of a segment without its log is a place of one case, which names the first.
    gone = {path for severity, law, path, _ in found(rows) if law == "DISK-4"}
    folders = {str(Path(path).parent) for path in gone}
    expected = {
        key: n for key, n in _places(rows).items() if str(Path(key[1]).parent) not in folders
    }
    assert expected == {
        key: n for key, n in told.items() if str(Path(key[1]).parent) not in folders
    }
    assert sum(_places(rows).values()) == sum(told.values())


class _Page(HTMLParser):
    """Collects the words of a page: a line for each element."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.articles: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            self.articles.append([])

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.words.append(data.strip())
            if self.articles:
                self.articles[-1].append(data.strip())


def test_the_page_tells_each_file(
    data: Path, rows: list[Any], tmp_path: Path, capsys: Capsys
) -> None:
    """It has an article for each cause, with severity, path, and the first byte, byte 0 too."""
    out = tmp_path / "page.html"
    shown(capsys, "report", data, "--out", out, code=1)
    page = _Page()
    page.feed(out.read_text(encoding="utf-8"))
    causes = [row for row in rows if row.get("type") == "cause" and row["severity"] != "note"]
    articles = {}
    for words in page.articles:
        severity, laws, path = words[:3]
        where = words[words.index("where") + 1] if "where" in words else ""
        articles[severity, frozenset(re.findall(r"[A-Z]+-\d+", laws)), path] = where
    for cause in causes:
        where = articles[cause["severity"], frozenset(cause["laws"]), cause["path"]]
        numbers = [int(one) for one in re.findall(r"\d+", where)]
        counted = [cause["count"]] if cause["count"] > 1 else []
        assert counted + cause["positions"] == numbers
    totals = [sum(row[f"{one}s"] for row in rows if "verdict" in row) for one in SEVERITIES]
    text = " ".join(page.words)
    for count, one in zip(totals, SEVERITIES, strict=True):
        assert f"{count} {one}{'' if count == 1 else 's'}" in text


def test_summaries_and_closing_lines_have_the_sums(
    data: Path, rows: list[Any], capsys: Capsys
) -> None:
    """A summary counts the places before it; the text has the same numbers, and their sum."""
    counts: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for row in rows:
        if "law" in row:
            counts[row["severity"]] += sum(_places([row]).values())
        if row.get("type") == "summary":
            assert [counts[one] for one in SEVERITIES] == [row[f"{one}s"] for one in SEVERITIES]
            verdicts[row["verdict"]] += 1
            counts.clear()
    assert not counts
    text = shown(capsys, "verify", data, "--summary", code=1)
    assert verdicts == Counter(
        line.partition(": /")[0].replace(" ", "-") for line in text.splitlines() if ": /" in line
    )


def _summary(number: int, verdict: Verdict) -> Summary:
    return Summary(f"t-{number}", "partition", verdict, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(("sound", "left_out"), [(9, 0), (10, 0), (11, 1)])
def test_sarif_keeps_so_many_summaries(
    sound: int,
    left_out: int,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten thousand; of more only the unsound ones, and how many others there are."""
    assert 10_000 == sarif.SUMMARIES_MAX
    monkeypatch.setattr(sarif, "SUMMARIES_MAX", 10)
    report = sarif.SarifReport("1", {})
    for number in range(sound):
        report.summary(_summary(number, Verdict.SOUND))
    report.summary(_summary(sound, Verdict.UNREADABLE))
    report.end()
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    summaries = run["properties"]["summaries"]
    assert sound + 1 - left_out == len(summaries)
    assert f"t-{sound}" == summaries[-1]["path"]
    assert left_out == run["properties"]["summariesLeftOut"]
