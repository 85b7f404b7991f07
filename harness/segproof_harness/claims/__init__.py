# SPDX-License-Identifier: Apache-2.0
"""What is claimed of each kernel, for input of every length; `tox -e proofs` proves it."""
