# SPDX-License-Identifier: Apache-2.0
"""What the harness has to know of a structure, in one description; and the table of all of them.

Machines, workloads, traces, Spark and the command line read these descriptions, so a structure is
added to every layer by writing one.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

from segproof_harness.structures.choices import Choose
from segproof_harness.structures.kinds import Kind, is_plain
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.steps import OPENED_AGAIN, Event, Setup, Situation, States
from segproof_model.language.outcomes import ErrorKind
from segproof_model.releases import RELEASES, SEGPROOF


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of an operation as histories have it."""

    name: str
    kind: Kind
    drawn: Callable[[Choose, Situation], Value] | None = None
    """Draw a value, biased by where the model stands; without it, that of the last opening."""

    def draw(self, choose: Choose, situation: Situation) -> Value:
        """Draw a value."""
        return self.drawn(choose, situation) if self.drawn else situation.opened[self.name]

    def refusal(self, value: Value) -> str | None:
        """Return why a value from a trace can't be this argument, or None if it can."""
        return self.kind.refusal(self.name, value)


@dataclass(frozen=True, slots=True, eq=False)
class OperationKind:
    """One operation of a structure, and how its arguments are drawn."""

    name: str
    parameters: tuple[Parameter, ...] = ()
    weight: int = 4
    """How often workloads draw it."""
    laws: tuple[str, ...] = ()
    """The laws that speak of it, the chief one first."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """The law that speaks of each kind of error, where it is another one."""
    ends: bool = False
    """Whether the object can't be used afterwards (close, delete)."""
    call_model: Callable[..., Any] | None = None
    """`f(draft, **arguments)` where the model's method of that name won't do."""
    call_impl: Callable[..., Any] | None = None
    """`f(object, **arguments)` where the implementation's method of that name won't do."""
    show: Callable[[Any], Any] | None = None
    """Return the part of an answer that is compared, where it is more than plain values."""
    is_query: bool = False
    """Whether it changes nothing: the model is asked the state itself, which refuses to be changed,
    and no draft of it."""
    sets_clock: bool = False
    """Whether it sets the clock to its argument `now_ms`, and is no call at all."""

    def draw(self, choose: Choose, situation: Situation) -> Operation:
        """Draw one call."""
        drawn = {item.name: item.draw(choose, situation) for item in self.parameters}
        return Operation(self.name, drawn)

    def argument_names(self) -> tuple[str, ...]:
        """Return the names of the arguments that a method is given."""
        return tuple(name for item in self.parameters for name in item.kind.names(item.name))

    @property
    def is_plain(self) -> bool:
        """Whether a method is given the arguments as they stand in the history."""
        return _is_plain(self)

    def arguments_for(
        self, arguments: Mapping[str, Value], hints: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the arguments as a method takes them whose signature has these types."""
        made: dict[str, Any] = {}
        for item in self.parameters:
            made |= item.kind.spread(item.name, arguments[item.name], hints)
        return made


def operation(
    name: str,
    weight: int,
    laws: str,
    *parameters: Parameter,
    errors: Mapping[str, str] = MappingProxyType({}),
    call: Callable[..., Any] | None = None,
    reads: Callable[[Any], Any] | None = None,
    **more: Any,
) -> OperationKind:
    """Return an operation; `laws` stand in one text.

    `call` is that of model and implementation. `reads` shows what the accessor or the method
    without arguments of that name answers, as long as its object is there. More: other fields of
    `OperationKind`.
    """
    if reads is not None:
        call = partial(_read, name, reads)
    if call is not None:
        more = {"call_model": call, "call_impl": call, **more}
    return OperationKind(name, parameters, weight, tuple(laws.split()), errors, **more)


def _read(name: str, shown: Callable[[Any], Any], owner: Any) -> Any:
    found = getattr(owner, name)
    return shown(found() if callable(found) else found)


@cache
def _is_plain(kind: OperationKind) -> bool:
    return all(is_plain(item.kind) for item in kind.parameters)


class Clock:
    """What time it is for a subject: as long as an operation sets no other, the same."""

    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        """Return the time in ms since 1970."""
        return self.now_ms


@dataclass(frozen=True, slots=True)
class Structure:
    """Everything the harness knows of one structure."""

    structure_id: str
    model: str
    """`module:Class` of the model."""
    opening: tuple[Parameter, ...]
    """Arguments of opening, for the first time and by `reopen` and `crash_reopen`."""
    draw_setup: Callable[[Choose], Setup]
    operations: tuple[OperationKind, ...]
    sometimes: States
    """States that must really be reached; those of every structure, `OPENED_AGAIN`, are added."""
    open_model: Callable[..., Any]
    """`f(arguments, files, release)` returns a Step whose `after` is a state, or the Files."""
    open_impl: Callable[..., Any]
    """`f(class, arguments, files)` returns the object; names are paths already."""
    impl: str = ""
    """`module:Class` of the implementation, where that is not the model's twin."""
    observed: tuple[str, ...] = ()
    """Accessors compared beside every image."""
    is_usable: Callable[[Any], bool] = lambda state: True
    """Whether a state is open: other operations than opening can succeed."""
    constructed: Callable[[Mapping[str, Value]], Mapping[str, Any]] = lambda arguments: arguments
    """`f(arguments)` returns what the model is constructed with, by which laws judge an opening."""
    takes_directory: bool = False
    """Whether `open_impl` finds the path of the subject's directory in `arguments["directory"]`."""
    takes_clock: bool = False
    """Whether the opening's argument `now_ms` sets the clock: that of the model's Files, and the
    subject's, which `open_impl` finds in `arguments["clock"]` and by which files are modified."""
    takes_folders: bool = False
    """Whether files may lie in folders of the directory; their names then are `folder/name`."""
    damage: Callable[[Mapping[str, Value], Mapping[str, bytes]], Mapping[str, bytes]] | None = None
    """`f(arguments, files)` returns the files as something broke them before this opening; not
    asked where the opening's argument `damage` is empty."""
    parts: Callable[[Any], Iterable[Any]] = lambda state: ()
    """What a state holds of other structures; each is held against their state laws."""
    laws: tuple[str, ...] = ()
    """Laws of opening, the chief one first."""
    is_asked: Callable[[Event], bool] = lambda event: event.outcome.error != ErrorKind.ENDLESS
    """Whether histories for a release have such a step: not one that its JVM would never end, nor
    one whose answer is left to chance there."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sometimes", {**OPENED_AGAIN, **self.sometimes})

    @property
    def system(self) -> str:
        """`kafka` or `rocketmq`: whose structure it is."""
        return self.model.split(".")[1]

    @property
    def profile_names(self) -> tuple[str, ...]:
        """The profiles it has: segproof's own, and the releases of its system."""
        return tuple(
            name for name in RELEASES if name == SEGPROOF.name or name.startswith(f"{self.system}-")
        )

    @property
    def newest_release(self) -> str:
        """The profile of the newest release."""
        return next(name for name in self.profile_names if name != SEGPROOF.name)

    def check_profile(self, name: str) -> None:
        """Raise ValueError, with the names that would do, for a release of another system."""
        if name not in self.profile_names:
            raise ValueError(
                f"{self.structure_id} is a structure of {self.system} and has no profile {name!r};"
                f" known: {', '.join(self.profile_names)}"
            )

    def operation(self, name: str) -> OperationKind | None:
        """Return the operation of this name, `reopen` and `crash_reopen` included."""
        return self.by_name().get(name)

    def by_name(self) -> Mapping[str, OperationKind]:
        """Return every operation by name."""
        return _by_name(self)

    def model_class(self) -> Any:
        """Return the model's class."""
        return load(self.model)

    def impl_class(self) -> Any:
        """Return the implementation's class."""
        name = self.model.rpartition(":")[2]
        return load(self.impl or f"segproof.{self.system}:{name}")

    def __hash__(self) -> int:
        return hash(self.structure_id)


@cache
def _by_name(structure: Structure) -> Mapping[str, OperationKind]:
    known = {kind.name: kind for kind in structure.operations}
    for name in ("reopen", "crash_reopen"):
        known[name] = OperationKind(name, structure.opening, 3, structure.laws)
    return known


@cache
def takes(opening: Callable[..., Any], name: str) -> bool:
    """Return whether the function that opens a structure has a parameter of this name."""
    return name in inspect.signature(opening).parameters


@cache
def _takes_create(opening: Callable[..., Any]) -> bool:
    """Return whether `create` may be passed, by its name or through `**options`."""
    parameters = inspect.signature(opening).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    return "create" in parameters or inspect.Parameter.VAR_KEYWORD in kinds


def creating(opening: Callable[..., Any], is_writable: bool = True) -> dict[str, bool]:
    """Return the argument that lets a writable structure make what is missing.

    Nothing for a class, such as one of another engine, whose opening always makes it.
    """
    return {"create": is_writable} if _takes_create(opening) else {}


def load(name: str) -> Any:
    """Return the object `package.module:Name`.

    Raises: ValueError that says what is wrong with the name.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ValueError(f"{name!r} is no `package.module:Class`")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise ValueError(f"{name!r}: the module can't be imported: {error}") from error
    if not hasattr(module, attribute):
        raise ValueError(f"{name!r}: the module has no {attribute!r}")
    return getattr(module, attribute)


DESCRIPTIONS = {
    "offset-index": "segproof_harness.structures.kafka.offset_index:OFFSET_INDEX",
    "time-index": "segproof_harness.structures.kafka.time_index:TIME_INDEX",
    "transaction-index": "segproof_harness.structures.kafka.transaction_index:TRANSACTION_INDEX",
    "record-batch": "segproof_harness.structures.kafka.record_batch:RECORD_BATCH",
    "record-file": "segproof_harness.structures.kafka.record_file:RECORD_FILE",
    "log-segment": "segproof_harness.structures.kafka.log_segment:LOG_SEGMENT",
    "partition-log": "segproof_harness.structures.kafka.partition_log:PARTITION_LOG",
    "index-file": "segproof_harness.structures.rocketmq.index_file:INDEX_FILE",
    "index-service": "segproof_harness.structures.rocketmq.index_service:INDEX_SERVICE",
    "store-checkpoint": "segproof_harness.structures.rocketmq.store_checkpoint:STORE_CHECKPOINT",
    "commit-log": "segproof_harness.structures.rocketmq.commit_log:COMMIT_LOG",
    "consume-queue": "segproof_harness.structures.rocketmq.consume_queue:CONSUME_QUEUE",
    "message-store": "segproof_harness.structures.rocketmq.message_store:MESSAGE_STORE",
}
"""Where each structure is described."""

STRUCTURE_IDS = tuple(DESCRIPTIONS)


def structure_named(structure_id: str) -> Structure:
    """Return the description. Raises ValueError with the known ids."""
    if structure_id not in DESCRIPTIONS:
        raise ValueError(f"no structure {structure_id!r}; known: {', '.join(DESCRIPTIONS)}")
    description: Structure = load(DESCRIPTIONS[structure_id])
    return description
