# SPDX-License-Identifier: Apache-2.0
"""Counts in messages, which agree with their nouns and verbs."""

ENDINGS = (("ch", "ches"), ("x", "xes"), ("ry", "ries"), ("py", "pies"), ("", "s"))
"""How nouns end, and their plurals."""
QUEUES_TELL = "as queues and index tell"
"""Behind a number of lost messages of RocketMQ: a unit of a queue or an entry leads to each."""


def verb(count: int, one: str, many: str) -> str:
    """Return the verb for so many, where other words stand between it and the count.

    >>> verb(1, "is", "are"), verb(0, "is", "are")
    ('is', 'are')
    """
    return one if count == 1 else many


def lost_words(known: int | None, at_least: int, word: str, unproven: int = 0) -> str:
    """Return how many of something are lost: `known`, or as far as it is known.

    At most `unproven` more may be lost than `at_least`.

    >>> lost_words(3, 3, "offset"), lost_words(None, 3, "offset"), lost_words(None, 0, "offset")
    ('3 offsets', 'at least 3 offsets', 'an unknown number of offsets')
    >>> lost_words(None, 0, "offset", 4), lost_words(None, 3, "offset", 4)
    ('up to 4 offsets', '3 to 7 offsets')
    """
    if known is not None:
        return plural(known, word)
    if unproven:
        from_to = f"{at_least} to " if at_least else "up to "
        return from_to + plural(at_least + unproven, word)
    return f"at least {plural(at_least, word)}" if at_least else f"an unknown number of {word}s"


def plural(count: int, word: str, one: str = "", many: str = "") -> str:
    """Return a count with its noun, and behind it the verb for one thing or for many.

    >>> plural(1, "entry", "leads", "lead"), plural(2, "batch"), plural(2, "copy")
    ('1 entry leads', '2 batches', '2 copies')
    """
    if count == 1:
        return f"1 {word} {one}".rstrip()
    ending, plural_ending = next(pair for pair in ENDINGS if word.endswith(pair[0]))
    return f"{count} {word.removesuffix(ending)}{plural_ending} {many}".rstrip()
