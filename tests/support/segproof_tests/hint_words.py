# SPDX-License-Identifier: Apache-2.0
"""What the words of a hint tell the reader to do to files, by their verbs.

The class of a hint is declared in the code. This is the second opinion: tests compare the two.
"""

import re
from pathlib import Path

from segproof.hints import Effect, Hint

_NOT_ADVICE = r"(?<!may )(?<!would )(?<!can )(?<!can't )(?<!to )(?<!not )(?<!a )(?<!--)(?<!which )"
"""Verbs after these are not what the reader is to do."""
REMOVES = re.compile(
    _NOT_ADVICE
    + r"\b(?:remove|delete|rm|rmdir|erase|drop|discard|unlink|truncate|throw [^;:,]*away)\b",
    re.IGNORECASE,
)
CHANGES = re.compile(
    _NOT_ADVICE
    + r"\b(?:move|rename|mv|overwrite|replace|correct|write|edit|restore|recover|mend|cut|abort)\b"
    r"|--in-place\b|\brebuild in place\b|\bcopy (?:\S+ ){0,3}(?:over|back)\b"
    r"|\bput [a-z ]*(?:in its place|back|right)\b"
    r"|\bcopy (?:[^.;:,]* )?from (?:a|another|the) (?:replica|broker|follower|leader)\b"
    r"|\b(?:let (?:a|the) broker|and start it|start (?:a|the) broker|put it in)\b"
    r"|\bmake an empty\b|\bkeep the (?:right )?one\b|\btouch\b|\bmkdir\b"
    r"|(?<!what )(?<!who )(?<!were )(?<!was )\bput (?!nothing\b)"
    r"|(?<!client )\bset (?:the|its|this|it)\b"
    r"|\bto (?:its|their) places?\b|\btake (?!the copy\b|\.deleted off )",
    re.IGNORECASE,
)
WRITES = re.compile(
    r"`segproof (?:salvage|rebuild)\b|--out\b|--cut-tail\b|\bcopy\b(?! of\b)"
    r"|\bfetch the segment's\b|\brebuild\b|\bsalvage\b",
    re.IGNORECASE,
)
KNOWN = frozenset(Path(__file__).with_name("hint_steps.txt").read_text("utf-8").split())
"""Words that begin a step, or stand before what a step is done to, in hints that change nothing.

A verb that no list knows may destroy: so a new one is looked at before it is added here.
"""
_OF_A_NOUN = (
    "the this that these those each every all both it them a an its their what which one some any"
    " no another two three your"
).replace(" ", "|")
STEPS = re.compile(
    r"(?:^|[;:.,] |\b(?:else|or|and|then) )(?:(?:else|or|and|then|first|only|also|to|not) )*"
    r"([a-z]+)"
    rf"|\b([a-z]+) (?=(?:{_OF_A_NOUN})\b)",
    re.IGNORECASE,
)
"""Where a word begins a step, and where one stands before a noun."""
ASIDE = re.compile(r"`[^`]*`|\([^)]*\)|\S*[/_.=]\S*")
"""Commands, what stands in brackets, and names of files and options."""


def unknown_steps(words: str) -> list[str]:
    """Return the words that begin a step, or stand before a noun, and that no list knows."""
    plain = ASIDE.sub("#", words)
    found = {one.lower() for match in STEPS.finditer(plain) for one in match.groups() if one}
    return sorted(found - KNOWN)


def effect_of_words(hint: str) -> Effect:
    """Return the class that the verbs of a hint speak for.

    Left out are the parts of a `Hint` that say no step: its precondition, and what is lost.
    """
    words = str(hint)
    if isinstance(hint, Hint):
        for part in (hint.only_if, hint.if_wrong):
            words = words.replace(part, "") if part else words
    for pattern, effect in (
        (REMOVES, Effect.REMOVES),
        (CHANGES, Effect.CHANGES_FILES),
        (WRITES, Effect.WRITES_ELSEWHERE),
    ):
        if pattern.search(words):
            return effect
    return Effect.READS


def faults_of(hint: str) -> list[str]:
    """Return what is wrong with a hint as such; a plain text is taken as one that only reads."""
    told = effect_of_words(hint)
    declared = hint.effect if isinstance(hint, Hint) else Effect.READS
    faults = []
    if told is not declared:
        faults.append(f"the words speak of {told.value!r}, declared is {declared.value!r}")
    if not {told, declared} & {Effect.CHANGES_FILES, Effect.REMOVES}:
        faults += [f"no list knows the step {word!r}" for word in unknown_steps(str(hint))]
    if {told, declared} & {Effect.CHANGES_FILES, Effect.REMOVES}:
        parts = {name: getattr(hint, name, "") for name in ("only_if", "if_wrong", "copy_step")}
        faults += [f"{name} is missing" for name, part in parts.items() if part not in hint]
        faults += [f"{name} is empty" for name, part in parts.items() if not part]
        if not KEEPS.search(parts["copy_step"]):
            faults.append("copy_step keeps no copy")
    return faults


KEEPS = re.compile(r"\b(?:copy|copies|keeps?|elsewhere)\b")
