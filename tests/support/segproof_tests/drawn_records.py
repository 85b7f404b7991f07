# SPDX-License-Identifier: Apache-2.0
"""Records of the model, drawn for batches that are written."""

from hypothesis import strategies as st

from segproof_model.kafka.format.record import Record, RecordHeader

optional_bytes = st.none() | st.binary(max_size=40)
timestamps = st.integers(0, 2**62) | st.integers(0, 2000) | st.just(-1)
headers = st.lists(st.builds(RecordHeader, st.text(max_size=5), optional_bytes), max_size=3).map(
    tuple
)


@st.composite
def records(draw: st.DrawFn, with_headers: bool = True) -> list[Record]:
    """Draw records with rising offsets that leave gaps."""
    offset = draw(st.integers(0, 2**40))
    drawn: list[Record] = []
    for gap in draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)):
        offset += gap
        named = draw(headers) if with_headers else ()
        timestamp, key, value = draw(timestamps), draw(optional_bytes), draw(optional_bytes)
        drawn.append(Record(offset, timestamp, key, value, named))
    return drawn
