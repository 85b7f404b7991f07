# SPDX-License-Identifier: Apache-2.0
"""Laws: the sentences of the contract, each with a predicate.

A module enters its laws into `register.LAWS` when it is imported.
"""
