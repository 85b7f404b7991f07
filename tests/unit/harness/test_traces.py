# SPDX-License-Identifier: Apache-2.0
"""Traces: what is written comes back, and what is damaged is refused in words."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.histories.traces import Trace, TraceError, read_trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.structures.operations import Operation, from_json_value, to_json_value
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import STRUCTURE_IDS

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5) | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)


@given(value=values)
def test_values_survive_json(value: Any) -> None:
    """Every value of an operation comes back from JSON as it was, bytes and nesting included."""
    assert value == from_json_value(json.loads(json.dumps(to_json_value(value))))


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_histories_survive_a_file(structure_id: str, tmp_path: Path) -> None:
    """A drawn history is a valid trace, and reads back equal, byte for byte."""
    for seed in range(20):
        trace = make_history(structure_id, "segproof", seed, 30)
        path = tmp_path / f"{seed}.jsonl"
        trace.write(path)
        again = read_trace(path)
        assert trace == again
        assert trace.to_text() == again.to_text()


def test_operation_reads_as_a_call() -> None:
    """An operation is shown as the call it stands for, long values cut."""
    assert "append(offset=5, position=120)" == repr(
        Operation("append", {"offset": 5, "position": 120})
    )
    assert len(repr(Operation("append", {"records": bytes(1000)}))) < 100


GOOD = Trace(
    "offset-index",
    "segproof",
    Setup(
        {"file": "a", "base_offset": 0, "max_index_size_bytes": 80, "writable": True}, {"a": b""}
    ),
    (Operation("append", {"offset": 1, "position": 2}), Operation("flush")),
)


def header(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Return the good trace with a changed header."""
    lines = list(GOOD.to_lines())
    parsed = json.loads(lines[0])
    change(parsed)
    return "\n".join([json.dumps(parsed), *lines[1:]]).encode()


def with_line(line: str) -> bytes:
    """Return the good trace with one more line."""
    return (GOOD.to_text() + line + "\n").encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "line 1: the file is empty"),
        (b"\xff\xfe", "line 1: not JSON"),
        (b"[1]", "line 1: not a JSON object"),
        (b"[" * 100_000, "line 1: not JSON"),
        (b'{"trace": 2}', '"trace" must be 1'),
        (header(lambda it: it.update(structure="x")), "no structure 'x'; known: offset-index"),
        (header(lambda it: it.update(structure=[])), "no structure []"),
        (header(lambda it: it.update(profile="kafka-9")), "no profile 'kafka-9'"),
        (header(lambda it: it.update(profile={})), "no profile {}"),
        (header(lambda it: it.update(seed="1")), "seed must be an integer"),
        (header(lambda it: it.update(setup=None)), '"setup" must be an object'),
        (header(lambda it: it["setup"].update(files=[])), '"files" of the setup'),
        (header(lambda it: it["setup"]["files"].update({"../a": {"base64": ""}})), "plain name"),
        (header(lambda it: it["setup"]["files"].update(a=1)), "base64 bytes"),
        (header(lambda it: it["setup"]["files"].update(a={"base64": "*"})), "not base64"),
        (header(lambda it: it["setup"]["arguments"].update(file="a/b")), "without a path"),
        (header(lambda it: it["setup"]["arguments"].update(file="..")), "without a path"),
        (header(lambda it: it["setup"]["arguments"].update(writable=1)), "true or false"),
        (
            header(lambda it: it["setup"]["arguments"].update(max_index_size_bytes=2**40)),
            "max_index_size_bytes must be from -16777216 to 16777216",
        ),
        (with_line('{"operation": "explode"}'), "line 4: offset-index has no operation 'explode'"),
        (with_line('{"operation": ["flush"]}'), "has no operation ['flush']"),
        (with_line('{"operation": "append", "offset": 1}'), "append takes the arguments"),
        (
            with_line('{"operation": "append", "offset": true, "position": 0}'),
            "offset must be an integer",
        ),
        (
            with_line('{"operation": "append", "offset": 1.5, "position": 0}'),
            "line 4: float is no value",
        ),
        (with_line('{"operation": "resize", "new_size": 9999999999}'), "new_size must be from"),
        (
            with_line('{"operation": "lookup_many", "target_offsets": [1, "x"]}'),
            "target_offsets[1] must be an integer",
        ),
    ],
)
def test_damage_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    """A trace that is damaged raises one error, which names file, line and reason."""
    path = tmp_path / "trace.jsonl"
    path.write_bytes(data)
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}: line ")


@given(data=st.data())
def test_any_change_is_read_or_refused(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Whatever byte of a trace changes: it is read, or refused as a trace, never anything else."""
    text = bytearray(GOOD.to_text().encode())
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("traces") / "trace.jsonl"
    path.write_bytes(text)
    with contextlib.suppress(TraceError):
        assert isinstance(read_trace(path), Trace)
