# SPDX-License-Identifier: Apache-2.0
"""The hash of a message key is Java's, and what an entry keeps of it is not negative."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.laws.rocketmq.format import index_chains
from segproof_model.laws.rocketmq.format import key_hash as laws
from segproof_model.rocketmq.format.key_hash import build_key, hash_code, index_key_hash

TEXTS = st.text(st.characters(codec="utf-16", categories=None) | st.sampled_from("\ud83d\ude00"))


@pytest.mark.checks("RMQHASH-1", "RMQHASH-2")
@given(TEXTS)
def test_hashes_obey_their_laws(text: str) -> None:
    """Of any text, lone surrogates included; one more is no hash of it."""
    assert laws.hash_runs_over_units(text, hash_code(text))
    assert laws.index_hash_is_not_negative(text, index_key_hash(text))
    assert not laws.hash_runs_over_units(text, hash_code(text) + 1)
    assert not laws.index_hash_is_not_negative(text, index_key_hash(text) + 1)


@pytest.mark.checks("RMQHASH-5")
@given(st.none() | TEXTS, st.none() | TEXTS)
def test_composed_keys_obey_their_law(topic: str | None, key: str | None) -> None:
    """Without escaping, a null part being a word."""
    assert laws.composed_key_has_no_escape(topic, key, build_key(topic, key))
    assert not laws.composed_key_has_no_escape(topic, key, build_key(key, topic) + "#")


@pytest.mark.checks("RMQHASH-6", "RMQIDX-41")
def test_golden_vectors_are_reproduced() -> None:
    """The laws of the known hashes and of the known files."""
    assert laws.vectors_are_reproduced()
    assert index_chains.golden_files_are_reproduced()
