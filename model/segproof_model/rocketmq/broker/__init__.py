# SPDX-License-Identifier: Apache-2.0
"""What a broker makes of the files: the index of a store, its checkpoint, the store itself."""
