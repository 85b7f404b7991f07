# SPDX-License-Identifier: Apache-2.0
"""The language that the model is written in: integers, files, outcomes, states, behaviours."""
