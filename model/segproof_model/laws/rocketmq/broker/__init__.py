# SPDX-License-Identifier: Apache-2.0
"""The laws of what a broker makes of the files, and of a store on disk as a whole."""
