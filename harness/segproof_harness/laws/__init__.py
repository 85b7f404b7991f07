# SPDX-License-Identifier: Apache-2.0
"""The model's laws on real files, how to break each, and a second opinion on verify."""
