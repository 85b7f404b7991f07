# SPDX-License-Identifier: Apache-2.0
"""The page of the rules that place the messages of a commit log, with the examples that test them.

The reasons of the numbers are the words that follow each constant in the code.
"""

import ast
import inspect
from collections.abc import Iterator
from itertools import groupby, pairwise
from types import ModuleType

from generators.believed import SPARED

from segproof.stretches.rocketmq import facts, file_rules, message_rules, witnesses
from segproof.stretches.rocketmq.placing import RULES
from segproof_tests.message_examples import EXAMPLES, LEGEND, Example

HEAD = """\
# What is believed of a damaged commit log, and why

Who should read this: an operator who asks why a message was kept, moved or set aside, and everyone
who changes these rules. The rules and the examples that test them are the source of this page.

RocketMQ's checksum covers the body of a message alone. It covers neither the offset at which the
message says that it lies, nor the number in its queue, its times, its flags, its topic and its
properties. So a message is known to be a message; where it belongs has to be decided. The
table below decides it for a whole log at once, from facts alone: where messages lie, which offset
each one says, which broker stored it, and where the units of the queues and the entries of the
index lead. Units are the second witness: each says offset and size of a message. The first rule
that applies to a message decides it.

`segproof salvage` saves a store by this table: what is kept, restored or moved is in the new log,
at the offset that the table gives it. All else stays in the old log, and the report says in which
file and bytes. `segproof verify`, `lookup` and `rebuild` take a damaged log as it is placed here.

## How to read the pictures

Each line is a file of the log, after the offset that its name says. Each word takes 128 bytes, and
a file has 2048. Zeros follow the last word.

"""

UNKNOWN = """
## What no fact tells

- **All of a log was overwritten by a block of another store that says the same offsets.** Nothing
  of this store is left to contradict it, so the block is kept. Units that lead to other messages
  show it: the report then says that this log is not that of its queues.
- **The only file of a log was cut off.** Its length is all that says how long the files of this log
  are. Messages that belong behind it have no room, and stay in the old log; with
  `--mapped-file-size` they are moved.
- **The end of a damaged log is lost, and no unit leads there.** The times of the checkpoint are
  compared with those of a log without damage alone ({law}`RMQDISK-53`).
- **A file of another store lies before the log, and no unit leads there.** So does a file with the
  messages of a topic that was deleted and made again. Its messages are kept, and are in no queue if
  their numbers rule out those of the first units behind them.
- **Three wrong units or more lead beyond the log.** `verify` says that the end of the log is lost
  ({law}`RMQDISK-52`), also if the log has messages with their numbers, or no unit of their file
  is right. `salvage` asks for both, and counts none of these units.
"""


def pages() -> dict[str, str]:
    """Return the page by its path below docs/."""
    rows = "".join(f"| `{_cell(word)}` | {meaning} |\n" for word, meaning in LEGEND)
    legend = f"| word | meaning |\n| --- | --- |\n{rows}"
    return {
        "explanation/believed-messages.md": HEAD + legend + "".join(_rules()) + UNKNOWN + _numbers()
    }


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _rules() -> Iterator[str]:
    yield "\n## The rules\n"
    for rule in RULES:
        yield f"\n### {rule.name.capitalize()}\n\n{rule.why}\n\n{rule.spares}\n"
        own = [one for one in EXAMPLES if one.rule == rule.name]
        for is_spared, alike in groupby(own, lambda one: one.is_spared):
            yield SPARED if is_spared else ""
            yield from (f"\n{one.words}\n\n{_picture(one)}" for one in alike)


def _picture(example: Example) -> str:
    """Return a line for each file, and below it what becomes of each message."""
    lines, fates = list[str](), iter(example.told.split())
    for begin, line in example.files:
        above, below = [f"{begin:<6}"], [" " * 6]
        for word in line.split():
            fate = "" if word in ("~", "|", "[", "]") else next(fates)
            width = max(len(word), len(fate))
            above.append(word.ljust(width))
            below.append(fate.ljust(width))
        lines += [" ".join(above).rstrip(), " ".join(below).rstrip()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def _numbers() -> str:
    rows = "".join(
        f"| `{name}` | {value:,} | {' '.join(why.split())} |\n"
        for module in (facts, file_rules, message_rules, witnesses)
        for name, value, why in _constants(module)
    )
    return f"\n## Numbers\n\n| constant | value | why this number |\n| --- | --- | --- |\n{rows}"


def _constants(module: ModuleType) -> Iterator[tuple[str, int, str]]:
    """Yield name, value and reason of the numbers of a module that have a reason."""
    body = ast.parse(inspect.getsource(module)).body
    for one, after in pairwise(body):
        is_said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and is_said:
            value = getattr(module, one.targets[0].id)
            if isinstance(value, int) and value > 0:
                yield one.targets[0].id, value, ast.literal_eval(after.value)
