# SPDX-License-Identifier: Apache-2.0
"""Words of every output: control characters are escaped."""


def printable(text: str) -> str:
    """Return the text on one line, without what a terminal would act on.

    >>> printable("a\\x1b[31mb\\n")
    'a\\\\x1b[31mb\\\\n'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def reason_of(error: Exception) -> str:
    """Return an error in one line; one of the operating system with its path, or both of a copy."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)  # somebody's own words, which may name a path
    words = error.strerror[:1].lower() + error.strerror[1:]
    places = [str(one) for one in (error.filename, error.filename2) if one]
    return f"{' to '.join(places)}: {words}" if places else words
