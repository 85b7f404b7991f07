# SPDX-License-Identifier: Apache-2.0
"""Laws: the sentences of the contract, each with a predicate."""
