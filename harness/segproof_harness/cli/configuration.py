# SPDX-License-Identifier: Apache-2.0
"""The file `segproof.toml`: findings to ignore, and defaults of the options of every verb.

The options and their types are those that the verbs declare. A value from the file becomes the
default by `default_map`, so the command line and the environment win over it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, date, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof.nearest_names import no_such
from segproof_harness.cli.common import complaint_about, refuse, tell
from segproof_harness.cli.usage import UsageError, value_problem
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from segproof_harness.reports.ignored_findings import IgnoredFindings, IgnoreEntry

FILE_NAME = "segproof.toml"
VARIABLE = "SEGPROOF_CONFIG"
BYTES_MAX = 1 << 20
"""A larger file is refused."""
LINE_BYTES_MAX = 1000
"""So is one with a longer line: reading a key takes the square of its dots."""
OPTION = "config"
IGNORE = "ignore"
LAWS = "law"
"""The option of `verify`, `report` and `spark verify` that names laws."""
ON_COMMAND_LINE_ONLY = {"in-place": "it changes data", "watch": "with it the call does not end"}
"""Options that a file forgotten in a parent directory must not give, and why."""
IGNORE_ONLY: ContextVar[bool] = ContextVar("ignore_only", default=False)
"""Whether a file gives no options, only what to ignore, unless the call itself names it."""
WORD = re.compile(r"[\w.-]*[^\W\d_][\w.-]*")
"""In a refusal: an option, or a value that is no number."""
_GIVEN, _READ = "segproof.given", "segproof.configuration"


def take(context: typer.Context, given: Path | None) -> None:
    """Read the configuration file of a verb, and make its values the defaults of the options.

    The option may stand before the verb too.
    """
    if context.resilient_parsing:
        return
    if context.parent is None:
        context.meta[_GIVEN] = given
        return
    in_call = given or context.meta[_GIVEN]
    named = in_call or os.environ.get(VARIABLE)
    path = named or _nearest()
    if path is None:
        return
    configuration = _Configuration(os.fspath(path))
    configuration.apply(context, gives_options=bool(in_call) or not IGNORE_ONLY.get())
    if not named and context.default_map:  # it may be a file that was forgotten, or another user's
        known = _options_of(context.command)
        keys = ", ".join(key for key, one in known.items() if one.name in context.default_map)
        tell(f"segproof: options from {configuration.path}: {keys}")


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        f"--{OPTION}",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=take,
        help=f"Configuration file. Default: the one that {VARIABLE} names, or else {FILE_NAME} in "
        "this directory or the nearest one above.",
    ),
]


def offer(root: Any) -> None:
    """Give the option to every verb of a command line, which declares it before the verbs."""
    option = next(one for one in root.params if one.name == OPTION)
    for verb in _verbs_below(root):
        verb.params.append(option)


def ignored_findings(context: typer.Context, *, no_ignore: bool = False) -> "IgnoredFindings":
    """Return what the configuration file of a verb says to ignore.

    Ends the command for a law that `verify` does not check.
    """
    from segproof_harness.reports.ignored_findings import IgnoredFindings

    read: _Configuration | None = context.meta.get(_READ)
    today = datetime.now(UTC).date()
    if read is None or no_ignore:
        return IgnoredFindings("", (), today)
    for number, entry in enumerate(read.ignore, 1):
        if complaint := complaint_about({entry.law}):
            refuse(f"{read.path}: [[{IGNORE}]] {number}: law: {complaint}")
    return IgnoredFindings(read.path, read.ignore, today)


def tell_origin(context: Any, refusal: str) -> None:
    """Say where the options were set that a refusal names, or whose values it names."""
    read: _Configuration | None = context and context.meta.get(_READ)
    if read is not None:
        read.tell_origin(refusal)


def _nearest() -> Path | None:
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return None
    paths = (folder / FILE_NAME for folder in (here, *here.parents))
    return next(filter(os.path.isfile, paths), None)


def _verbs_below(command: Any) -> Iterator[Any]:
    for one in getattr(command, "commands", {}).values():
        if hasattr(one, "commands"):
            yield from _verbs_below(one)
        else:
            yield one


class _Configuration:
    """What one file says. Every mistake ends the command; it names the file and the key."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._tables = self._read()
        self.ignore = list(self._entries())
        self._verb: Any = None
        """The context of the verb that is called."""

    def apply(self, context: typer.Context, *, gives_options: bool) -> None:
        """Make the values the defaults of the verb that is called; check those of all verbs."""
        tables = self._tables if gives_options else {}
        defaults = self._defaults(context, context.find_root().command, tables, ())
        words = []
        at: Any = context
        while at.parent is not None:
            words.append(at.command.name)
            at = at.parent
        for word in reversed(words):
            defaults = defaults.get(word, {})
        self._verb = context
        context.default_map = defaults
        context.meta[_READ] = self

    def tell_origin(self, refusal: str) -> None:
        """Name the section and the keys of a refusal's options that stand in the file."""
        words, keys = set(WORD.findall(refusal)), []
        for key, option in _options_of(self._verb.command).items():
            source = self._verb.get_parameter_source(option.name)
            if source is None or source.name != "DEFAULT_MAP":
                continue
            value = str(self._verb.default_map[option.name])
            if f"--{key}" in words or (not option.is_flag and words & {*WORD.findall(value)}):
                keys.append(key)
        if keys:
            section = ".".join(self._verb.command_path.split()[1:])
            tell(f"  set in {self.path}: [{section}]: {', '.join(keys)}")

    def _read(self) -> dict[str, Any]:
        import tomllib

        try:
            with open(self.path, "rb") as file:
                data = file.read(BYTES_MAX + 1)
        except OSError as error:
            refuse(reason_of(error))
        if len(data) > BYTES_MAX:
            refuse(f"{self.path}: more than {BYTES_MAX} bytes; no configuration is so large")
        for number, line in enumerate(data.splitlines(), 1):
            if len(line) > LINE_BYTES_MAX:
                refuse(f"{self.path}: line {number} has more than {LINE_BYTES_MAX} bytes; break it")
        try:
            return tomllib.loads(data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            refuse(f"{self.path}: no TOML: byte {error.start} is not UTF-8")
        except RecursionError:
            refuse(f"{self.path}: no TOML: its values are nested too deep")
        except ValueError as error:
            refuse(f"{self.path}: no TOML: {error}")

    def _refuse(self, at: str, complaint: str) -> Any:
        refuse(f"{self.path}: {at}: {complaint}")

    # --- what is ignored

    def _entries(self) -> "Iterator[IgnoreEntry]":
        entries = self._tables.pop(IGNORE, [])
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            self._refuse(IGNORE, f"begin each entry with a line [[{IGNORE}]]")
        for number, fields in enumerate(entries, 1):
            yield self._entry(f"[[{IGNORE}]] {number}", fields)

    def _entry(self, at: str, fields: dict[str, Any]) -> "IgnoreEntry":
        from segproof_harness.reports.ignored_findings import IgnoreEntry

        known = list(IgnoreEntry.__dataclass_fields__)
        for name, value in fields.items():
            if name not in known:
                self._refuse(at, no_such("key", name, known))
            if name == "until":
                if type(value) is not date:
                    self._refuse(f"{at}: {name}", "write a day without quotes, such as 2026-12-31")
            elif not isinstance(value, str) or not value.strip():
                self._refuse(f"{at}: {name}", f"write text in quotes, not {_toml(value)}")
        for name in ("law", "reason"):
            if name not in fields:
                self._refuse(at, f"has no {name}; each entry needs a law and a reason")
        pattern = fields.get("path")
        parts = () if pattern is None else PurePath(pattern).parts
        if pattern is not None and (not parts or "**" in pattern or {"..", "~"} & {*parts}):
            self._refuse(
                f"{at}: path",
                "name a file, or a folder for all its files; * fits any name; **, .. and ~ are not"
                " known",
            )
        return IgnoreEntry(**{**fields, "law": fields["law"].upper()})

    # --- defaults of options

    def _defaults(
        self, context: typer.Context, group: Any, tables: Mapping[str, Any], above: tuple[str, ...]
    ) -> dict[str, Any]:
        """Return the values below a group of verbs by verb, then by the parameter of an option."""
        defaults: dict[str, Any] = {}
        for name, table in tables.items():
            path = (*above, name)
            at = f"[{'.'.join(path)}]"
            if name not in group.commands:
                known = [*group.commands] if above else [IGNORE, *group.commands]
                self._refuse(at, no_such("verb", name, known))
            if not isinstance(table, dict):
                self._refuse(name, f"give the options of this verb below a line {at}")
            command = group.commands[name]
            if not hasattr(command, "commands"):
                defaults[name] = self._options(context, command, table, at)
            elif command.commands:  # without: its package is missing
                defaults[name] = self._defaults(context, command, table, path)
        return defaults

    def _options(
        self, context: typer.Context, command: Any, table: Mapping[str, Any], at: str
    ) -> dict[str, Any]:
        options, values = _options_of(command), {}
        for name, value in table.items():
            if name not in options:
                self._refuse(at, no_such("option", name, options))
            if name in ON_COMMAND_LINE_ONLY:
                why = ON_COMMAND_LINE_ONLY[name]
                self._refuse(f"{at}: {name}", f"give --{name} on the command line: {why}")
            option = options[name]
            values[option.name] = self._value(context, option, value, f"{at}: {name}")
        if os.environ.get("NO_COLOR"):
            values.pop("color", None)
        return values

    def _value(self, context: typer.Context, option: Any, value: Any, at: str) -> Any:
        """Return a value as it would be written on the command line, if the option takes it."""
        words: Any = value
        if option.is_flag:
            if not isinstance(value, bool):
                self._refuse(at, f"write true or false, not {_toml(value)}")
        elif option.multiple:
            if not isinstance(value, list) or not all(map(_is_word, value)):
                self._refuse(at, f"write a list such as [{_toml('A')}, {_toml('B')}],"
                                 f" not {_toml(value)}")  # fmt: skip
            words = list(map(str, value))
        elif _is_word(value):
            words = str(value)
        else:
            self._refuse(at, f"write text or a number, not {_toml(value)}")
        if option.name == LAWS and (complaint := complaint_about({one.upper() for one in words})):
            self._refuse(at, complaint)
        try:
            option.process_value(context, words)
        except UsageError as error:
            self._refuse(at, value_problem(error))
        return words


def _options_of(command: Any) -> dict[str, Any]:
    """Return the options of a verb by their keys."""
    return {
        name.removeprefix("--"): one
        for one in command.params
        for name in one.opts
        if name.startswith("--") and one.name != OPTION
    }


def _is_word(value: Any) -> bool:
    return isinstance(value, str | int | float | date) and not isinstance(value, bool)


def _toml(value: Any) -> str:
    """Return a value for a message, cut short."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = f'"{value}"' if isinstance(value, str) else text
    return text if len(text) <= 40 else f"{text[:40]}..."
