# SPDX-License-Identifier: Apache-2.0
"""The register with every planted defect in it."""

import pkgutil
from importlib import import_module

import segproof_harness.canaries
from segproof_harness.canaries.register import CANARIES

__all__ = ["CANARIES"]

for _module in pkgutil.iter_modules(segproof_harness.canaries.__path__):
    import_module(f"segproof_harness.canaries.{_module.name}")
