# SPDX-License-Identifier: Apache-2.0
"""`python -m segproof_harness.cli`: the command line without its script."""

from segproof_harness.cli import main

main()
