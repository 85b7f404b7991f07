# SPDX-License-Identifier: Apache-2.0
"""What `verify` tells a person and CI: verdicts, causes, colours, JSON, SARIF and JUnit."""

import io
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from segproof.findings import FURTHER, Finding, Severity
from segproof.verification import RULES, VERIFIED_LAWS
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.broken_files import EXAMPLES, damaged_copy
from segproof_harness.reports import consumers
from segproof_harness.reports.causes import Causes
from segproof_harness.reports.json_lines import schema
from segproof_harness.reports.jsonl import FIELDS
from segproof_harness.reports.terminal import STYLES
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.printed_rows import Capsys, jsonl, shown

FIRST, SECOND = name_of(0, ""), name_of(60, "")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
LAWS = ("OFFIDX-2", "BATCH-3", "DISK-5", "DISK-25", "PROD-3", "RMQDISK-11", "RMQDISK-26")
"""Examples of damage of each kind."""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a partition whose first segment has the offset index of a busier one: one cause."""
    folder = copied_partition("txn-a", tmp_path)
    shutil.copyfile(
        next((KAFKA / "plain").glob("*/" + f"{SECOND}.index")), folder / f"{FIRST}.index"
    )
    monkeypatch.chdir(tmp_path)
    return Path(folder.name)


def run(capsys: Capsys, *arguments: str, code: int = 1) -> str:
    """Run `verify` and return what it printed on standard output."""
    return shown(capsys, "verify", *arguments, code=code)


def objects(capsys: Capsys, *arguments: str, code: int = 1) -> list[Any]:
    """Return the objects of `--format jsonl`."""
    return jsonl(capsys, "verify", *arguments, code=code)


# --- text


def test_one_cause_is_one_block_behind_the_verdict(foreign: Path, capsys: Capsys) -> None:
    """An index of another segment once gave 180 findings in 910 lines."""
    listed = run(capsys, str(foreign), "--all").count("\n  reproduce: ")
    shown = run(capsys, str(foreign), "--no-notes")
    verdict, head, *_ = shown.splitlines()
    assert verdict.startswith(f"index damage only: {foreign}: ")
    assert " batches, offsets 0 to " in verdict
    assert head.startswith("error ")
    assert f"{foreign}/{FIRST}.index: " in head
    counted = re.search(r"\.index: (\d+) places, the first at bytes", head)
    count = 0 if counted is None else int(counted[1])
    assert 5 < count <= listed
    assert 1 == shown.count("error ")
    assert "  consumers: a fetch that a wrong entry answers" in shown


def test_a_lost_log_is_one_cause(foreign: Path, capsys: Capsys) -> None:
    """Each of its three index files breaks the law that the log is there."""
    (foreign / f"{FIRST}.log").unlink()
    shown = run(capsys, str(foreign), "--no-notes")
    assert "; 1014 offsets lost\n" in shown
    assert 1 == shown.count("error ")
    assert "error DISK-4 " in shown
    assert ": 3 places: " in shown
    (command,) = (line for line in shown.splitlines() if line.startswith("    segproof "))
    assert 3 == run(capsys, *shlex.split(command)[2:]).count("error DISK-4 ")


def test_the_commands_can_be_pasted(foreign: Path, capsys: Capsys) -> None:
    """Each stands on a line of its own, with the real path, and does what the block says."""
    shown = run(capsys, str(foreign), "--no-notes")
    rebuild, verify = (line[4:] for line in shown.splitlines() if line.startswith("    segproof "))
    assert f"segproof rebuild {foreign} --out ../rebuilt/{foreign.name}" == rebuild
    listed = run(capsys, *shlex.split(verify)[2:])
    assert listed.startswith("error ")
    assert 0 == cli.run(shlex.split(rebuild)[1:])
    assert 0 == cli.run(["verify", f"../rebuilt/{foreign.name}"])
    assert "DIR" not in shown


def test_a_path_with_a_space_is_quoted_in_commands(foreign: Path, capsys: Capsys) -> None:
    """A command with a bare space would name two paths."""
    odd = foreign.rename("a topic-0")
    shown = run(capsys, str(odd), "--no-notes")
    assert "    segproof rebuild 'a topic-0' --out '../rebuilt/a topic-0'\n" in shown


def test_verdicts_alone(foreign: Path, capsys: Capsys) -> None:
    """--summary prints a line for each partition; the closing lines count them."""
    sound = str(KAFKA / "txn-a" / "txn-a-0")
    assert 1 == cli.run(["verify", str(foreign), sound, "--summary"])
    shown = capsys.readouterr()
    first, second = shown.out.splitlines()
    assert first.startswith("index damage only: ")
    assert second.startswith(f"sound: {sound}")
    assert "2 partitions: 1 sound, 1 index damage only\n" in shown.err
    kinds = [one["type"] for one in objects(capsys, str(foreign), sound, "--summary")]
    assert ["summary", "summary"] == kinds
    for other in (["--all"], ["--format", "sarif"], ["--format", "junit"]):
        assert 2 == cli.run(["verify", sound, "--summary", *other])


def test_what_is_not_sound_among_many_is_named_at_the_end(foreign: Path, capsys: Capsys) -> None:
    """Three thousand sound partitions once hid the damaged one."""
    sound = str(KAFKA / "txn-a" / "txn-a-0" / f"{FIRST}.index")
    assert 1 == cli.run(["verify", str(foreign), *[sound] * 10, "--summary"])
    closing = capsys.readouterr().err
    assert "1 partition, 10 files: 10 sound, 1 index damage only\n" in closing
    assert f"  index damage only: {foreign}\n" in closing
    assert 1 == cli.run(["verify", *[str(foreign)] * 11, "--summary"])
    assert "  index damage only: 1 more\n" in capsys.readouterr().err


def test_an_ended_run_tells_its_causes(foreign: Path, capsys: Capsys) -> None:
    """--max-findings ends a run inside of a partition, which then has no verdict."""
    shown = run(capsys, str(foreign), "--max-findings", "4", "--no-notes")
    assert shown.startswith("error ")
    assert "4 places" in shown


# --- a terminal


class Terminal(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, *arguments: str, **environment: str
) -> str:
    """Return what a verb sends to a terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", "COLUMNS": str(columns), **environment}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    cli.run(arguments)
    monkeypatch.undo()
    return terminal.getvalue()


@pytest.mark.parametrize("columns", [20, 80, 120])
def test_a_terminal_gets_whole_words_and_whole_commands(
    columns: int, foreign: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are wrapped between words at any width; a command, or a long path, stays whole."""
    path = str(foreign.absolute())
    plain = run(capsys, path, "--jobs", "1")
    shown = ESCAPE.sub("", on_terminal(monkeypatch, columns, "verify", path, "--jobs", "1"))
    assert plain.split() == shown.split()
    commands = [line for line in plain.splitlines() if line.startswith("    segproof ")]
    assert commands == [line for line in shown.splitlines() if line.startswith("    segproof ")]
    for line in shown.splitlines():
        words = line.split()
        assert len(line) <= columns or line in commands or len(words) <= 2 or path in words[-1]


@pytest.mark.parametrize("verb", [("verify", "--all"), ("rebuild", "--all", "--out", "nowhere")])
def test_a_terminal_gets_each_finding_with_whole_words_and_commands(
    verb: tuple[str, ...],
    tmp_path: Path,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also the command inside a hint: it stays on one line, and can be copied."""
    folder = copied_partition("plain", tmp_path)
    EXAMPLES["BATCH-3"].do(folder)
    monkeypatch.chdir(tmp_path)
    words = (verb[0], folder.name, *verb[1:])
    assert 1 == cli.run(words)
    plain = capsys.readouterr().out
    shown = ESCAPE.sub("", on_terminal(monkeypatch, 60, *words))
    assert plain.split() == shown.split()
    assert f"`segproof salvage {folder.name} --out ../saved`" in shown
    prose = [line for line in shown.splitlines() if "segproof" not in line and "/" not in line]
    assert len(prose) > 4
    assert max(map(len, prose)) <= 60


def test_a_terminal_gets_each_name_beside_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """`segment_base_offset:` once ended a line, and the number began the next."""
    shown = on_terminal(monkeypatch, 50, "lookup", str(KAFKA / "plain/plain-0"), "--offset", "5")
    assert [] == [line for line in shown.splitlines() if line.endswith(":") or len(line) > 50]


def test_a_terminal_gets_the_steps_of_a_lookup_with_whole_words(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of names and values is wrapped as a sentence is."""
    words = ("lookup", str(copied_partition("plain", tmp_path)), "--offset", "5", "--explain")
    assert 0 == cli.run(words)
    plain = capsys.readouterr().out
    shown = on_terminal(monkeypatch, 60, *words)
    assert plain.split() == shown.split()
    assert max(map(len, shown.splitlines())) <= 60 < max(map(len, plain.splitlines()))


def test_a_misspelt_name_gets_the_nearest_known_one(capsys: Capsys) -> None:
    """The list of all known names follows."""
    assert 2 == cli.run(["replay", "--structure", "offset-inde"])
    words = "no structure 'offset-inde'; did you mean offset-index? Known: offset-index, "
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "environment", "is_colored"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {}, False),
    ],
)
def test_colour_on_a_terminal(
    option: str,
    environment: dict[str, str],
    is_colored: bool,
    foreign: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Severities and verdicts are coloured, unless NO_COLOR, the terminal or --color forbids it."""
    shown = on_terminal(monkeypatch, 80, "verify", str(foreign), "--color", option, **environment)
    assert is_colored == bool(ESCAPE.search(shown))
    assert "index damage only" in shown


def test_piped_output_has_no_control_characters(foreign: Path, capsys: Capsys) -> None:
    """Only --color always puts them in, and a pipe is never wrapped."""
    plain = run(capsys, str(foreign))
    colored = run(capsys, str(foreign), "--color", "always")
    assert "\x1b" not in plain
    assert "\x1b[" in colored
    assert plain == ESCAPE.sub("", colored)


def test_consumers_are_told_of_laws_that_are_verified() -> None:
    """A law that is misspelt there would never be found."""
    assert set(consumers.OF_LAWS) | consumers.OF_BATCHES < VERIFIED_LAWS
    assert set(consumers.OF_STRUCTURES) < {rule.structure for rule in RULES.values()}


def test_a_long_complaint_is_wrapped_between_words(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal; a pipe gets it on one line."""
    assert 2 == cli.run(["verify", "/no/such/path", "--law", "BATHC-3"])
    plain = capsys.readouterr().err
    assert 1 == plain.count("\n")
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr("sys.stderr", terminal)
    assert 2 == cli.run(["verify", "/no/such/path", "--law", "BATHC-3"])
    shown = terminal.getvalue()
    assert plain.split() == shown.split()
    assert max(map(len, shown.splitlines())) <= 50


def test_each_severity_and_verdict_has_a_colour() -> None:
    """One that is added has to get one."""
    from segproof.findings import Verdict

    assert {*Severity, *Verdict} == set(STYLES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", str(KAFKA), "--law", "SEG7"], "did you mean SEG-7"),
        (["verify", str(KAFKA), "--law", "offidx2"], "OFFIDX-2"),
        (["explain", "BATHC-3"], "BATCH-3"),
        (["verify", str(KAFKA), "--depe"], "--deep"),
    ],
)
def test_a_slip_of_the_pen_is_answered_by_what_was_meant(
    arguments: list[str], words: str, capsys: Capsys
) -> None:
    """`--law SEG7` listed 110 ids."""
    assert 2 == cli.run(arguments)
    shown = capsys.readouterr().err
    assert words in shown
    assert len(shown) < 250


# --- for programs


@pytest.mark.needs("jsonschema")
@pytest.mark.parametrize("law", LAWS)
def test_each_line_of_json_keeps_the_schema(law: str, tmp_path: Path, capsys: Capsys) -> None:
    """Findings have exactly their fields, and no field `type`; causes and summaries follow them."""
    from jsonschema import Draft202012Validator

    folder = damaged_copy(EXAMPLES[law], tmp_path)
    told = objects(capsys, str(folder), "--deep")
    described = schema()
    Draft202012Validator.check_schema(described)
    validator = Draft202012Validator(described)
    for each in told:
        validator.validate(each)
    kinds = [each.get("type", "finding") for each in told]
    assert ["finding", "cause", "summary"] == list(dict.fromkeys(kinds))
    for kind in ("finding", "cause", "summary"):
        expected = FIELDS if kind == "finding" else described["$defs"][kind]["required"]
        found = next(each for each in told if each.get("type", "finding") == kind)
        assert list(expected) == list(found)
    findings = [each for each in told if "type" not in each]
    causes = [each for each in told if each.get("type") == "cause"]
    assert len(findings) == sum(each["count"] for each in causes)
    assert {each["law"] for each in findings} == {one for each in causes for one in each["laws"]}


@pytest.mark.needs("jsonschema")
def test_the_schema_refuses_what_is_wrong() -> None:
    """A number where text is due, an unknown verdict, a finding with a type."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema())
    finding: dict[str, Any] = dict.fromkeys(FIELDS, "x") | {
        "law": "SEG-7", "severity": "error", "position": 8,
    }  # fmt: skip
    assert validator.is_valid(finding)
    assert not validator.is_valid({**finding, "expected": 8})
    assert not validator.is_valid({**finding, "type": "finding"})
    assert not validator.is_valid({**finding, "severity": "fatal"})


def test_places_that_were_only_counted_count_in_a_cause(tmp_path: Path, capsys: Capsys) -> None:
    """Of a law in a file a hundred findings are made; the cause knows of all places."""
    folder = copied_partition("plain", tmp_path)
    (folder / f"{FIRST}.index").write_bytes(b"\1" * 8 * 500)
    causes = [
        each for each in objects(capsys, str(folder)) if each.get("type") == "cause"
        and each["severity"] == "error"
    ]  # fmt: skip
    assert 499 <= max(max(each["laws"].values()) for each in causes) <= 500


def test_a_cause_has_the_words_of_a_place() -> None:
    """On Spark the finding that counts further places comes first."""
    facts = Severity.ERROR, "offset-index", "/t"
    more = Finding(
        "SEG-7", *facts, None, None, "9", f"9{FURTHER}", "h", "segproof v /t --law SEG-7"
    )
    place = Finding("SEG-7", *facts, 8, "0", "1", "wrong", "h", f"{more.reproduce} --position 8")
    causes = Causes()
    for finding in (more, place):
        causes.add(finding)
    (cause,) = causes.take()
    assert ("wrong", 10, [8]) == (cause.first.message, cause.count, cause.positions)
    assert "segproof v /t --law SEG-7 --all" == cause.reproduce


SARIF_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "id": {"type": "string"},
                                                "shortDescription": SARIF_TEXT,
                                                "help": SARIF_TEXT,
                                            },
                                            "additionalProperties": False,
                                        },
                                    },
                                },
                                "additionalProperties": False,
                            }
                        },
                        "additionalProperties": False,
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": SARIF_TEXT,
                                "locations": {
                                    "type": "array",
                                    "uniqueItems": True,
                                    "items": {
                                        "type": "object",
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "type": "object",
                                                        "properties": {"uri": {"type": "string"}},
                                                        "additionalProperties": False,
                                                    },
                                                    "region": {
                                                        "type": "object",
                                                        "properties": {
                                                            "startLine": {
                                                                "type": "integer",
                                                                "minimum": 1,
                                                            }
                                                        },
                                                        "additionalProperties": False,
                                                    },
                                                },
                                                "additionalProperties": False,
                                            }
                                        },
                                        "additionalProperties": False,
                                    },
                                },
                                "partialFingerprints": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                                "properties": {"type": "object"},
                            },
                            "additionalProperties": False,
                        },
                    },
                    "properties": {"type": "object"},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
"""The parts of SARIF 2.1.0 that are written: what the standard requires of them, and no others."""


@pytest.mark.needs("jsonschema")
@pytest.mark.parametrize("law", ["OFFIDX-2", "RMQDISK-11"])
def test_sarif(law: str, tmp_path: Path, capsys: Capsys) -> None:
    """One run, a rule for each law, a result for each finding, and the summaries beside them."""
    from jsonschema import validate

    folder = damaged_copy(EXAMPLES[law], tmp_path)
    findings = [each for each in objects(capsys, str(folder)) if "type" not in each]
    document = json.loads(run(capsys, str(folder), "--format", "sarif"))
    validate(document, SARIF)
    (told,) = document["runs"]
    assert [each["law"] for each in findings] == [each["ruleId"] for each in told["results"]]
    rules = told["tool"]["driver"]["rules"]
    for result, finding in zip(told["results"], findings, strict=True):
        position = finding["position"]
        at = "" if position is None else f"byte {position}: "
        assert result["message"]["text"].startswith(f"{at}{finding['message']}. What to do: ")
        assert position == result["properties"]["position"]
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].startswith(folder.as_uri())
        assert {"startLine": 1} == place["region"]  # without it code hosts show no place
    prints = [each["partialFingerprints"]["segproof/v1"] for each in told["results"]]
    assert len(prints) == len(set(prints))
    (summary,) = told["properties"]["summaries"]
    assert "index-damage-only" == summary["verdict"]


@pytest.mark.parametrize(("fail_on", "failures"), [("warning", 2), ("error", 1)])
def test_junit(
    fail_on: str,
    failures: int,
    tmp_path: Path,
    capsys: Capsys,
) -> None:
    """A suite for each partition, a failed case for each cause that the exit code counts."""
    folder = damaged_copy(EXAMPLES["OFFIDX-2"], tmp_path)
    (folder / f"{SECOND}.index").unlink()
    sound = str(KAFKA / "txn-a" / "txn-a-0")
    text = run(capsys, str(folder), sound, "--format", "junit", "--fail-on", fail_on)
    root = ElementTree.fromstring(text)
    assert "testsuites" == root.tag
    damaged, healthy = root
    assert [str(folder), str(failures), "0"] == [
        damaged.attrib[name] for name in ("name", "failures", "errors")
    ]
    cases = damaged.findall("testcase")
    assert str(len(cases)) == damaged.attrib["tests"]
    assert failures == len(damaged.findall("testcase/failure"))
    assert "reproduce: segproof verify " in (damaged.findtext("testcase/failure") or "")
    assert ("1", "0") == (healthy.attrib["tests"], healthy.attrib["failures"])
    verdict = healthy.find("properties/property")
    assert verdict is not None
    assert verdict.attrib["value"].startswith("sound: ")


@pytest.mark.parametrize("output_format", ["sarif", "junit", "jsonl"])
def test_a_hostile_name_breaks_no_document(
    output_format: str, tmp_path: Path, capsys: Capsys
) -> None:
    """Colours, lines, markup and bytes that are no UTF-8 in the name of a folder."""
    folder = tmp_path / '[red]\x1b[31mt\n<a>&"\udcff\x00'[:-1]
    shutil.copytree(damaged_copy(EXAMPLES["OFFIDX-2"], tmp_path), folder)
    text = run(capsys, str(folder), "--format", output_format)
    assert text.isascii()
    if output_format == "junit":
        assert r"[red]\x1b[31mt\n<a>" in ElementTree.fromstring(text)[0].attrib["name"]
    elif output_format == "sarif":
        uri = json.loads(text)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert "%1B%5B31mt%0A%3Ca%3E" in uri["artifactLocation"]["uri"]
    else:
        assert str(folder) == json.loads(text.splitlines()[-1])["path"]


def test_a_file_of_another_program_is_not_called_empty(tmp_path: Path, capsys: Capsys) -> None:
    """Its name says that it is no file of Kafka or RocketMQ; nothing of it was read."""
    (tmp_path / "passwd").write_text("root:x:0:0\n")
    told = run(capsys, str(tmp_path / "passwd"))
    assert f"{tmp_path}/passwd: file, nothing was read; 1 error" in told
    assert "no file of Kafka or RocketMQ that verify looks into has such a name" in told


@pytest.mark.parametrize("name", ["", "passwd"])
@pytest.mark.parametrize("options", ["--fail-on error", "--law BATCH-3", "--position 3"])
def test_nothing_to_check_never_looks_like_success(
    name: str, options: str, tmp_path: Path, capsys: Capsys
) -> None:
    """Whatever is asked for: a wrong path in CI once passed as sound."""
    (tmp_path / "passwd").write_text("root:x:0:0\n")
    told = run(capsys, str(tmp_path / name), *options.split())
    assert told.startswith("unreadable: ")
    assert "error DISK-20 " in told
