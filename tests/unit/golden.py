# SPDX-License-Identifier: Apache-2.0
"""Bytes that the classes of Kafka 3.9.0 wrote."""

BATCHES = {
    name: bytes.fromhex(text)
    for name, text in {
        "magic 0": "000000000000000700000014a4cdab3a0000000000016b0000000568656c6c6f",
        "magic 1": "00000000000000070000001c806a8245010000000000000003e8000000016b000000056865"
        "6c6c6f",
        "magic 2": "000000000000000700000049ffffffff026b2efbb500000000000100000000000003e8000000"
        "00000003e9ffffffffffffffffffffffffffff0000000216000000010a68656c6c6f00160002"
        "02010a746865726500",
    }.items()
}
SNAPSHOT = bytes.fromhex(
    "0001b3d6508900000002000000000000000a00020000000a000000000000001400000005000000000000022b0000"
    "0007000000000000004b000000000000000b0000ffffffffffffffffffffffff00000000ffffffffffffffffffff"
    "ffffffffffffffffffff"
)
"""Of two producers, see test_producer_state."""
EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")
