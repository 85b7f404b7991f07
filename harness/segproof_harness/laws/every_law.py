# SPDX-License-Identifier: Apache-2.0
"""The register with every law of the model in it: those that are judged, and the retired ones."""

import pkgutil
from importlib import import_module

import segproof_model.laws
from segproof_model.laws.register import LAWS, RETIRED

__all__ = ["LAWS", "RETIRED"]

for _module in pkgutil.walk_packages(segproof_model.laws.__path__, "segproof_model.laws."):
    import_module(_module.name)
