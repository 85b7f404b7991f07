# SPDX-License-Identifier: Apache-2.0
"""The methods of an old release of each system as they result: docs/reference/methods/*.md.

One release a system, old enough to be otherwise in every structure; of others `segproof explain`
prints the same.
"""

from collections.abc import Mapping, Sequence

from segproof_harness.reports.release_methods import Words, methods_of, place_of, structures_of
from segproof_model.language.behaviours import Release
from segproof_model.language.states import Released
from segproof_model.releases import RELEASES

SHOWN = {"kafka": "kafka-2.8.2", "rocketmq": "rocketmq-4.9.8"}
"""The release that is shown of each system."""
OPENING = """\
# The methods of {release} as they result

Who should read this: everyone who asks what one old release does at a place of the code, or
writes a behaviour and asks what it stands on.

A file of the model says what the newest release does; a release is made of it by
[behaviours](../profiles.md). Below stand, for each class, the methods that `{release}` has
otherwise, {count} in all: first what is called first, then what that calls by `super()`, down to
what the newest release does. What is not called is not shown. Of any other release, and one class
of it:

```sh
segproof explain {other} {structure}
```
"""


def words_text(words: Words) -> str:
    """Return what one class says of a method."""
    text = f"{words.title}\n"
    return f"{text}\n```python\n{words.source}\n```\n" if words.source else text


def method_text(name: str, said: Sequence[Words]) -> str:
    """Return one method, as often as it is said."""
    return "\n".join([f"### {name}\n", *map(words_text, said)])


def structure_text(structure: type[Released], methods: Mapping[str, list[Words]]) -> str:
    """Return the methods of one class."""
    parts = [f"## {structure.__name__}\n", f"In `{place_of(structure)}`.\n"]
    return "\n".join(parts + [method_text(name, said) for name, said in methods.items()])


def page(release: Release, other: str, structure: str) -> str:
    """Return the page of a release."""
    methods = {one: methods_of(release, one, own=True) for one in structures_of(release)}
    count = sum(map(len, methods.values()))
    opening = OPENING.format(release=release.name, count=count, other=other, structure=structure)
    return "\n".join([opening, *(structure_text(one, found) for one, found in methods.items())])


def pages() -> dict[str, str]:
    """Return the pages by path."""
    others = {
        "kafka": ("kafka-0.11.0.3", "LogSegment"),
        "rocketmq": ("rocketmq-4.3.2", "MessageStore"),
    }
    return {
        f"reference/methods/{system}.md": page(RELEASES[name], *others[system])
        for system, name in SHOWN.items()
    }
