# SPDX-License-Identifier: Apache-2.0
"""Commands that findings, hints and verbs print, to be pasted into bash."""

import os
import re

PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
WORD = re.compile(r"\$'(?:[^'\\]|\\.)*'|'[^']*'|[^\s']+")


def quoted(word: str) -> str:
    """Return a word as bash reads it back: on one line, printable, without a backtick.

    What can't be shown is escaped in the form `$'...'`, bytes that are no UTF-8 too.

    >>> print(quoted("t-0"), quoted("a b"), quoted("it's\\n"))
    t-0 'a b' $'it\\'s\\n'
    """
    if PLAIN.fullmatch(word):
        return word
    if word.isprintable() and "'" not in word and "`" not in word:
        return f"'{word}'"
    return f"$'{''.join(map(_escaped, word))}'"


def quoted_path(path: str | os.PathLike[str]) -> str:
    """Return a path as a word of a command, where it is never taken for an option.

    >>> quoted_path("-0.index")
    './-0.index'
    """
    word = os.fspath(path)
    return quoted(f"./{word}" if word.startswith("-") else word)


def command_line(*words: object) -> str:
    """Return a command. Path objects are paths; every other word is taken as its text."""
    return " ".join(
        quoted_path(word) if isinstance(word, os.PathLike) else quoted(str(word)) for word in words
    )


def copy_commands(folder: str, copy: str, how: str = "-an") -> str:
    """Return the commands, as a hint shows them, that put what is in a folder at the path `copy`.

    The folder's own name does not count: it may be `.`, or that of a link.

    >>> print(copy_commands(".", "new/t-0"))
    `install -d new/t-0`, `cp -an ./. new/t-0`
    """
    inside, new = quoted_path(os.path.join(folder, "")), quoted_path(copy)
    return f"`install -d {new}`, `cp {how} {inside}. {new}`"


def words_in(command: str) -> list[str]:
    """Return the words of a command that was printed, as they stand there."""
    return WORD.findall(command)


def _escaped(character: str) -> str:
    if character in "'\\":
        return "\\" + character
    if character == "\n":
        return r"\n"
    if character.isprintable() and character != "`":
        return character
    try:
        data = os.fsencode(character)
    except UnicodeEncodeError:  # half of a surrogate pair, which no name on a disk holds
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)
