# SPDX-License-Identifier: Apache-2.0
"""What cvc5 says of a condition that z3 has decided."""

import cvc5

SECONDS_MAX = 3


def decide(smt: str) -> str:
    """Return `unsat` (the condition holds), `sat` or `unknown`."""
    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    solver.setOption("tlimit-per", str(1000 * SECONDS_MAX))
    solver.setLogic("ALL")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smt, "a condition")
    symbols, said = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        if command.getCommandName() != "set-logic":
            said += command.invoke(solver, symbols) or ""
    return "unknown" if "unknown" in said else said.strip()
