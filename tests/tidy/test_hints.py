# SPDX-License-Identifier: Apache-2.0
"""The hints of findings and errors: each says what to do, and declares what that does to files."""

import ast
import importlib
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import segproof
import segproof.verifying
import segproof_harness
from segproof.hints import Effect, Hint, changes, reads, removes, writes
from segproof.verification import RULES
from segproof_tests.hint_commands import unknown_commands
from segproof_tests.hint_words import effect_of_words, faults_of, unknown_steps

VERBS = (
    "ask", "check", "compare", "copy", "correct", "find", "give", "keep", "look", "make", "mend",
    "move", "nothing", "open", "read", "rebuild", "save", "say", "see", "stop", "verify", "write",
)  # fmt: skip
ACTION = re.compile(rf"(?:^|[;:,.] |\b(?:else|or|and) )(?:{'|'.join(VERBS)})\b", re.IGNORECASE)
ROOT = Path(__file__).resolve().parents[2]
DANGEROUS = (Effect.CHANGES_FILES, Effect.REMOVES)
FACTORIES = ("reads", "writes", "changes", "removes")
DESTROYING = (
    "stop the broker and remove the file",
    "copy the segment from another replica",
    "rename the file to the offset it begins with",
    "run `segproof rebuild DIR --in-place`",
    "mv CURRENT /tmp",
    "rm -r consumequeue",
    "delete the checkpoint",
    "let a broker load the partition",
    "set the recovery point to 0",
    "put the file of another replica here",
    "take the file of another broker",
    "throw the .swap away",
)
"""What hints have said, or might: none of it may pass as a plain text, nor as one that reads."""
UNKNOWN_STEPS = (
    "wipe the folder index",
    "find out what is in it, and clear consumequeue",
    "format this file before the next start",
    "find out what put it there, and empty the folder",
    "swap the two files",
    "look at both, then shred each of them",
)
"""Steps whose verbs no list knows: none may pass before somebody has looked at it."""


def texts_of(node: ast.AST) -> Iterator[str]:
    """Yield the texts in an expression; of an f-string all that is fixed, as one."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from texts_of(node.body)
        yield from texts_of(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for part in node.values:
            yield from texts_of(part)


@cache
def sources() -> list[tuple[Path, ast.Module]]:
    """Return the modules of the implementation and of the harness."""
    roots = [Path(package.__path__[0]) for package in (segproof, segproof_harness)]
    paths = [path for root in roots for path in sorted(root.rglob("*.py"))]
    return [(path, ast.parse(path.read_text())) for path in paths]


def plain_hints() -> Iterator[tuple[str, str]]:
    """Yield the hints that are given as plain texts, with their places."""
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                for text in texts_of(node.value):
                    yield f"{path.name}:{node.value.lineno}", text


def inline_hints() -> Iterator[tuple[str, str, str]]:
    """Yield place, factory and words of the hints that are made where they are given."""
    for path, tree in sources():
        for node in ast.walk(tree):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(
                node.func, ast.Name
            ) else ""  # fmt: skip
            if name in FACTORIES and isinstance(node, ast.Call) and node.args:
                for text in texts_of(node.args[0]):
                    yield f"{path.name}:{node.lineno}", name, text


def modules() -> Iterator[ModuleType]:
    """Yield the modules that declare hints."""
    for package in (segproof, segproof_harness):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            if "from segproof.hints import" in path.read_text():
                parts = path.relative_to(root.parent).with_suffix("").parts
                yield importlib.import_module(".".join(parts))


def declared_hints() -> dict[str, Hint]:
    """Return the hints of the rules, and those that modules keep as constants, by name."""
    found = {law: rule.hint for law, rule in RULES.items()}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, Hint):
                found[f"{module.__name__}.{name}"] = value
    return found


def test_the_hint_of_each_rule_says_what_to_do() -> None:
    """A cause alone leaves the reader where he was; `nothing` is an answer too."""
    assert [] == [law for law in RULES if not ACTION.search(RULES[law].hint)]


def test_the_hints_of_the_checks_say_what_to_do() -> None:
    """Also where a check knows better than the rule of its law."""
    hints = [text for place, name, text in inline_hints() if name in ("reads", "writes")]
    assert len(hints) > 8
    assert [] == [hint for hint in hints if not ACTION.search(hint)]


def test_the_words_of_each_hint_have_the_class_that_is_declared() -> None:
    """And what changes or removes has precondition, loss and the step that keeps a copy."""
    found = declared_hints()
    assert len(found) > len(RULES)
    faults = {name: faults_of(hint) for name, hint in found.items()}
    assert {} == {name: told for name, told in faults.items() if told}


def test_the_page_shows_each_hint_that_changes_or_removes() -> None:
    """Those in a table, or under a name that a variable holds, were not on it."""
    page = (ROOT / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    shown = [
        (name, hint)
        for name, hint in declared_hints().items()
        if hint.effect in DANGEROUS and not name.startswith("segproof_harness")
    ]
    assert len(shown) > 20
    assert [] == [name for name, hint in shown if hint.action.replace("|", "&#124;") not in page]
    assert "take none from another" in page
    assert "run `mkdir data.unfinished && mv data/segproof-salvage.incomplete" in page
    assert "`gzip -dc STORE/commitlog/d2/00000000000000001500.gz >" in page
    assert "this process is PID" in page


def test_the_words_of_hints_made_in_place_have_their_class() -> None:
    """Their words are known before any file shows them."""
    effects = dict(zip(FACTORIES, Effect, strict=True))
    for place, name, text in inline_hints():
        if name in ("reads", "writes"):
            told = effect_of_words(text)
            assert told is effects[name], f"{place}: {text!r} speaks of {told.value!r}"
            assert unknown_steps(text) == [], f"{place}: {text!r}"


def test_a_plain_text_only_reads() -> None:
    """The hints of errors have no class: those of them that write, change or remove need one."""
    found = [(place, text, faults_of(text)) for place, text in plain_hints()]
    assert len(found) > 20
    assert [] == [each for each in found if each[2]]


def test_each_printed_command_is_followed_or_only_reads() -> None:
    """A command that no list knows would be followed by nobody but an operator."""
    texts = [*declared_hints().items(), *plain_hints()]
    texts += [(place, text) for place, _, text in inline_hints() if text.count("`") % 2 == 0]
    assert len([text for _, text in texts if "`" in text]) > 100
    unknown = {place: unknown_commands(text) for place, text in texts}
    assert {} == {place: commands for place, commands in unknown.items() if commands}
    for command in ("shred DIR/x", "dd if=DIR/x of=y", "truncate -s 0 DIR/x", "gunzip DIR/x.gz"):
        assert [command] == unknown_commands(f"look at it with `cmp`, or `{command}`")


@pytest.mark.parametrize("words", DESTROYING)
def test_a_planted_hint_that_destroys_is_seen(words: str) -> None:
    """As a plain text, and declared as one that reads or writes elsewhere."""
    assert faults_of(words)
    assert faults_of(reads(words))
    assert faults_of(writes(words))
    bare = Hint(words, effect_of_words(words))
    assert set(faults_of(bare)) >= {"only_if is empty", "if_wrong is empty", "copy_step is empty"}
    make = removes if effect_of_words(words) is Effect.REMOVES else changes
    whole = make(words, only_if="x is so", if_wrong="y is lost", copy_step="copy it away")
    assert faults_of(whole) == []
    assert "step keeps no copy" in faults_of(
        make(words, only_if="x is so", if_wrong="y is lost", copy_step="take care")
    )[-1].replace("_", " ")


@pytest.mark.parametrize("words", UNKNOWN_STEPS)
def test_a_planted_step_that_no_list_knows_is_seen(words: str) -> None:
    """As a plain text, and in a hint that reads or writes elsewhere."""
    for hint in (words, reads(words), writes(words), reads(f"nothing, if it is so; else {words}")):
        assert any(fault.startswith("no list knows the step") for fault in faults_of(hint))


def test_a_hint_without_a_part_is_refused() -> None:
    """Where it is made, so that no run can show it."""
    with pytest.raises(AssertionError, match="four parts"):
        removes("remove it", only_if="", if_wrong="it is lost", copy_step="copy it away")
    hint = changes("rename it", only_if="a", if_wrong="b", copy_step="copy it away")
    assert hint == "copy it away. Only if a: rename it. If that is wrong, b"
    again = pickle.loads(pickle.dumps(hint.after("first; ")))
    assert again == f"first; {hint}"
    assert (again.effect, again.only_if, again.if_wrong, again.copy_step) == (
        Effect.CHANGES_FILES, "a", "b", "copy it away"
    )  # fmt: skip
