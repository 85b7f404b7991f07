# SPDX-License-Identifier: Apache-2.0
"""The page of the command line, docs/reference/cli.md, from the verbs' own functions."""

import inspect
import types
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from segproof_harness import cli
from segproof_harness.cli.oracle import app as oracle
from segproof_spark.cli import app as spark

OPENING = """\
# Command line

Who should read this: everyone who calls `segproof` from a shell or a program.

```console
$ segproof VERB ...
```

Data goes to stdout, progress (on a terminal only) and a summary to stderr. Files are opened
read-only, and nothing is written beside them. `--format jsonl` gives one JSON object a line, for
programs; the names of its fields do not change.

| exit code | meaning |
| --- | --- |
| 0 | clean; notes do not count |
| 1 | findings, or data so bad that the question has no answer |
| 2 | usage, or a path that can't be read; an unreadable file inside a directory is a finding |
| 3 | an internal error, a defect of segproof |

Ctrl-C and a reader that closes the pipe end the process with 130 and 141, as a shell reports the
two signals. `segproof --version` names the release, the formats and the profiles.

Every verb takes `--config FILE`. [The file](../howto/keep-settings-in-a-file.md), by default
`segproof.toml`, holds findings to ignore, and defaults of the options below.
"""
FIELDS = """\
## Fields

A **finding** has {finding}. `position` is a byte of the file, counted from 0; what there is not is
null. [The findings](findings.md) are explained one by one. What else `verify` writes has a [page of
its own](verify-output.md), with a JSON Schema.

`dump` of an offset index: `offset`, `position`; of a time index: `timestamp`, `offset`; of a
transaction index: `version`, `producer_id`, `first_offset`, `last_offset`, `last_stable_offset`.
Of a log, for each batch: {batch}. `size` is that of the whole batch in bytes; what cannot be read
is null. With `--records` the records of a batch follow it: `offset`, `timestamp`, `key`, `value`,
`headers`, a list of `key` and `value`, and `sequence`; bytes are base64 unless `--keys` or
`--values` says otherwise. In the dump of a directory each object begins with the `path` of its
file.

`dump` of a producer snapshot, for each producer: `producer_id`, `producer_epoch`,
`coordinator_epoch`, `current_txn_first_offset`, `last_timestamp`, and of its last batch
`first_sequence`, `last_sequence`, `first_offset`, `last_offset`, `offset_delta`; without a batch
these are null. Of `leader-epoch-checkpoint`: `epoch`, `start_offset`; of a checkpoint of offsets:
`topic`, `partition`, `offset`; of `partition.metadata`: `version`, `topic_id`; of the marker of a
clean stop: `version`, `broker_epoch`.

`ls` of a partition: `kind`, `path`, `topic`, `partition`, `state`, `segments`, `size_bytes`,
`first_offset`, `end_offset`, `first_timestamp`, `max_timestamp`, `reason`; of a segment
`base_offset` in place of topic, partition, state and segments; of the parts of a store `topic`,
`queue_id` and `files`. `end_offset` is exclusive. What is not known is null, and `reason` says what
could not be read.

Timestamps are milliseconds since 1970. As text they are ISO 8601 in UTC.

`lookup` of an offset: `target`, `segment_base_offset`, `index_offset`, `index_position`,
`batch_base_offset`, `batch_position`, `batch_size`; of a timestamp: `target`, `timestamp`,
`offset`. What has no answer has nulls, and a `reason`. With `--explain` there are `steps`, each
with `action`, `path` and `facts`.
"""


def pages() -> dict[str, str]:
    """Return the page by path."""
    from segproof.tables.schemas import TABLES
    from segproof_harness.reports.jsonl import FIELDS as FINDING_FIELDS

    of_batch = TABLES["batches"].own_names
    of_batch = TABLES["batches"].own_names
    fields = FIELDS.format(finding=_wrapped(FINDING_FIELDS), batch=_wrapped(of_batch))
    verbs = [_verb(name, function) for name, function in _verbs()]
    return {"reference/cli.md": "\n".join([OPENING, *verbs, fields])}


def _wrapped(names: Any) -> str:
    return ",\n".join(
        ", ".join(f"`{name}`" for name in list(names)[at : at + 5])
        for at in range(0, len(list(names)), 5)
    )


def _verbs() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every verb with its function, those below `oracle` and `spark` last."""
    for module in cli.VERBS:
        yield module.__name__.rpartition(".")[2], module.command
    for group, app in (("oracle", oracle), ("spark", spark)):
        for command in app.registered_commands:
            assert command.callback is not None
            name = command.name or command.callback.__name__.replace("_", "-")
            yield f"{group} {name}", command.callback


def _verb(name: str, function: Callable[..., Any]) -> str:
    """Return a verb's section: what it does, how it is called, its options."""
    text, examples = inspect.cleandoc(function.__doc__ or ""), ""
    for heading in ("\b\nExamples:\n", "\b\nExample:\n"):
        if heading in text:
            text, _, examples = text.partition(heading)
    parts = [f"## {name}\n", text.strip() + "\n"]
    if examples:
        parts.append(f"```sh\n{inspect.cleandoc(examples)}\n```\n")
    rows = list(_rows(function))
    if rows:
        parts.append("| argument | meaning | default |\n| --- | --- | --- |\n" + "\n".join(rows))
    return "\n".join(parts) + "\n"


def _rows(function: Callable[..., Any]) -> Iterator[str]:
    signature = inspect.signature(function, eval_str=True)
    for parameter in signature.parameters.values():
        annotation = parameter.annotation
        if get_origin(annotation) is not Annotated:
            continue
        kind, info = get_args(annotation)[:2]
        if info.hidden:
            continue
        is_shown = parameter.default not in (inspect.Parameter.empty, None, "")
        default = f"`{parameter.default}`" if is_shown and parameter.default is not False else ""
        yield f"| {_called(parameter.name, kind, info)} | {_escaped(info.help)} | {default} |"


def _called(name: str, kind: Any, info: Any) -> str:
    """Return how an argument is written on the command line."""
    plain, repeats = _plain(kind)
    value = info.metavar or name.upper()
    if isinstance(plain, type) and issubclass(plain, StrEnum):
        value = " or ".join(item.value for item in plain)
    if not isinstance(info, typer.models.OptionInfo):
        return f"`{value}{'...' if repeats and not value.endswith('...') else ''}`"
    # Inside Annotated the first declaration stands where the default would.
    declared = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    option = next((each for each in declared if each.startswith("--")), f"--{name}")
    return f"`{option}`" if plain is bool else f"`{option} {value}`"


def _plain(kind: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether there may be several."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    if get_origin(kind) is list:
        return get_args(kind)[0], True
    return kind, False


def _escaped(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("<", "\\<")
