# SPDX-License-Identifier: Apache-2.0
"""A claim: what a kernel may assume, what it promises, and why its loops keep that promise.

Texts are Python expressions, each on a line of its own unless parentheses are open; all of them
hold together. They speak of the parameters by name, of `result`, and of a parameter as it was at
the call by `old(name)`. Beside Python's operators there are

- `implies(a, b)` and `iff(a, b)`;
- `each(low, high, lambda n: ...)` for each number from low to high, exclusive, `some` for one;
- `pairs(low, high, lambda i, j: ...)` for each two numbers i < j there;
- the words that `define` adds, such as `rises(keys, entries)`.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

KERNELS = "segproof.kernels."
"""What stands before the module of each kernel."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Why one loop does what is claimed; the loops of a kernel are listed in the order of its text.

    Of a `for` loop over `name`, the next value is `next_name` and the bound is `end_name`.
    """

    invariant: str = "True"
    """What holds before each pass and behind the last one."""
    decreases: str = ""
    """A number that no pass makes negative and each pass makes smaller; `for` has its own."""
    ghosts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Variables that the kernel does not have: their value before the loop, and behind a pass."""
    unfolds: str = ""
    """Applications of words with a recursive definition, which are replaced by it once: before the
    loop, and at the beginning of each pass."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed of one kernel."""

    kernel: str
    """Module below `segproof.kernels`, and name: `slot_search:lower_slot`."""
    requires: str
    """What callers owe. Where it fails, nothing is claimed."""
    ensures: str
    """What the result obeys, and what callers may use of it in their own proofs."""
    proves: str = ""
    """What the result obeys too, and no caller needs."""
    loops: tuple[Loop, ...] = ()
    changes: tuple[str, ...] = ()
    """The parameters that are written to."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """What the memoryviews hold, where it is not int64: a letter of the module `struct`."""
    cases: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """All values of a parameter, each proved by itself."""
    word: str = ""
    """A word for the result, as a function of the arguments; only of what writes nothing."""
    laws: tuple[str, ...] = ()
    """The laws of which it proves a part."""

    @property
    def anchor(self) -> str:
        """Where the page of the claims has it."""
        return self.kernel.replace(":", "")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the claims: its parameters, and what it stands for."""

    parameters: tuple[str, ...]
    meaning: str
    is_recursive: bool
    """Whether it speaks of itself: it is then replaced only where a loop says `unfolds`."""


CLAIMS: dict[str, Claim] = {}
"""The claims of the modules that were loaded, by kernel."""
WORDS: dict[str, Word] = {}
"""The words that were defined, by name."""


TAKEN = (
    "each", "forall", "iff", "implies", "len", "max", "min", "old", "pairs", "result", "some",
    "sum",
)  # fmt: skip
"""Names that claims have beside their words."""


def claim(kernel: str, requires: str = "", ensures: str = "", **more: object) -> None:
    """Enter a claim into `CLAIMS`. Raises ValueError if its kernel has one, or its word exists."""
    if kernel in CLAIMS:
        raise ValueError(f"{kernel} has a claim already")
    _refuse_taken(str(more.get("word", "")))
    laws = tuple(str(more.pop("laws", "")).split())
    CLAIMS[kernel] = Claim(kernel, requires, ensures, laws=laws, **more)  # type: ignore[arg-type]


def define(head: str, meaning: str) -> None:
    """Enter a word into `WORDS`; the head is its call: `rises(keys, entries)`.

    A recursive word has the form `... if n <= 0 else ...`, and speaks of itself for n - 1 only; n
    is its last parameter. So some function is what it says. Raises ValueError for other words.
    """
    name, _, parameters = head.rstrip(")").partition("(")
    names = tuple(one.strip() for one in parameters.split(","))
    nodes = list(ast.walk(ast.parse(meaning, mode="eval")))
    _refuse_taken(name)
    if any(name in _called(ast.walk(ast.parse(word.meaning))) for word in WORDS.values()):
        raise ValueError(f"{name} is used before it is defined")
    bound = {one.arg for node in nodes if isinstance(node, ast.Lambda) for one in node.args.args}
    free = {node.id for node in nodes if isinstance(node, ast.Name)} - bound - set(names)
    if bound & set(names) or free != _called(nodes) or "old" in free:
        raise ValueError(f"{name}: a name is no parameter, or means two things")
    is_recursive = name in free
    if is_recursive and not _ends(name, names[-1], meaning):
        raise ValueError(f"{name} has not the form of a recursive word")
    WORDS[name] = Word(names, meaning, is_recursive)


def _refuse_taken(word: str) -> None:
    if word in {*TAKEN, *WORDS, *(one.word for one in CLAIMS.values() if one.word)}:
        raise ValueError(f"{word} means something already")


def _called(nodes: Iterable[ast.AST]) -> set[str]:
    return {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}


def _ends(name: str, last: str, meaning: str) -> bool:
    """Return whether a recursive word speaks of itself for smaller numbers only, down to 0."""
    match ast.parse(meaning, mode="eval").body:
        case ast.IfExp(test=test, body=at_zero, orelse=above):
            calls = [one for one in ast.walk(above) if isinstance(one, ast.Call)]
            own = [one for one in calls if ast.unparse(one.func) == name]
            return (
                ast.unparse(test) == f"{last} <= 0"
                and name not in _called(ast.walk(at_zero))
                and all(ast.unparse(one.args[-1]) == f"{last} - 1" for one in own)
            )
    return False


def expressions_of(text: str) -> Iterator[str]:
    """Yield the expressions of a claim's text: each a line, or more while parentheses are open."""
    pending = ""
    for line in map(str.strip, text.splitlines()):
        pending = f"{pending} {line}".strip()
        if pending and pending.count("(") == pending.count(")"):
            yield pending
            pending = ""
    if pending:
        raise ValueError(f"a parenthesis is open: {pending}")
