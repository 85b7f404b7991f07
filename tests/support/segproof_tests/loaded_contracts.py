# SPDX-License-Identifier: Apache-2.0
"""All contracts, loaded: a process that is forked from one with this module imports nothing more.

What a contract imports (kernels, classes and the model) takes half a second in each process.
"""

from segproof_tests.contracts import every_contract

CONTRACTS = every_contract()
