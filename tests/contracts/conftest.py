# SPDX-License-Identifier: Apache-2.0
"""Judge the contracts that are asked for, two at a time, and close with the table of verdicts."""

import multiprocessing
import os
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

import pytest

from segproof_tests.contract_checking import Verdict, judge
from segproof_tests.contracts import Contract, every_contract

JOBS = 2
SECONDS_MAX = 900

Verdicts = dict[str, "Future[list[Verdict]]"]
JUDGED = pytest.StashKey[Verdicts]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that takes a `contract` once for each of them."""
    if "contract" in metafunc.fixturenames:
        metafunc.parametrize("contract", every_contract(), ids=lambda contract: contract.id)


@pytest.fixture(scope="session")
def judged(request: pytest.FixtureRequest) -> Generator[Verdicts, None, None]:
    """The verdicts to come, for the contracts of the tests that were selected.

    Each is judged in a process of its own. All are forked from one that has imported CrossHair, and
    what the contracts import.
    """
    wanted: dict[str, None] = {}  # in order, each once
    for item in request.session.items:
        if isinstance(item, pytest.Function) and "judged" in item.fixturenames:
            contract: Any = item.callspec.params["contract"]
            wanted.setdefault(contract.id)
    # What the solver tries first must not change from run to run.
    os.environ["PYTHONHASHSEED"] = "0"
    processes = multiprocessing.get_context("forkserver")
    preloaded = ["crosshair.core_and_libs", judge.__module__, "segproof_tests.loaded_contracts"]
    processes.set_forkserver_preload(preloaded)
    with ProcessPoolExecutor(JOBS, processes, max_tasks_per_child=1) as pool:
        found = {name: pool.submit(judge, name) for name in wanted}
        request.config.stash[JUDGED] = found
        yield found
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def verdicts(contract: Contract, judged: Verdicts) -> dict[str, Verdict]:
    """The verdicts on the contract of this test, by variant."""
    return {verdict.variant: verdict for verdict in judged[contract.id].result(SECONDS_MAX)}


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print each contract with CrossHair's own words, its calibration and its bound."""
    judged = config.stash.get(JUDGED, {})
    rows = [
        row(contract, {one.variant: one for one in future.result()})
        for contract in every_contract()
        if (future := judged.get(contract.id)) and future.done()
        if not future.cancelled() and future.exception() is None
    ]
    if not rows:
        return
    head = ("contract", "verdict", "seconds", "mutants", "an input", "bound")
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    terminalreporter.section(f"{len(rows)} contracts")
    for line in (head, *rows):
        cells = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
        terminalreporter.write_line("  ".join(cells).rstrip())


def row(contract: Contract, verdicts: dict[str, Verdict]) -> tuple[str, ...]:
    """Return one line of the table."""
    mutants = [one for variant, one in verdicts.items() if variant.startswith("mutant")]
    caught = sum(one.is_counterexample for one in mutants)
    return (
        contract.id,
        verdicts["contract"].message,
        f"{verdicts['contract'].seconds:.1f}",
        f"{caught} of {len(mutants)} caught",
        "known" if verdicts["vacuity"].state == "post_fail" else verdicts["vacuity"].state,
        contract.bound,
    )
