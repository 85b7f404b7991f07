# SPDX-License-Identifier: Apache-2.0
"""Files of JSON in `config` that are whole, or not there, and lack what the queues show."""

import shutil
from pathlib import Path

import pytest

from segproof.findings import Finding
from segproof.repair import salvage_store
from segproof.verification import verify
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.store_files import long_store

OFFSETS = '{"offsetTable":{"T@g":{0:1}}}'
TOPICS = '{"topicConfigTable":{"T":{"readQueueNums":4}}}'
NO_TOPICS = '{"dataVersion":{},"topicConfigTable":{}}'
COPY_FIRST = "stop the broker and copy the folder config away. Only if "
OTHERS = {"subscriptionGroup.json": "{}", "delayOffset.json": '{"offsetTable":{}}'}
ROUTE = "a producer or consumer of a topic finds no route"
BEGIN = "each group begins again where its consumeFromWhere says"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a sound store with queues of the topic T, without a folder `config`."""
    return long_store(tmp_path_factory.mktemp("config") / "store", 3)


def found_with(store: Path, config: dict[str, str]) -> list[Finding]:
    """Return the defects that the files of `config` cause; another law than 57 is none of them."""
    folder = store / "config"
    shutil.rmtree(folder, ignore_errors=True)
    if config:
        folder.mkdir()
    for name, text in config.items():
        (folder / name).write_text(text)
    assert [] == list(store_disagreements(store))
    return [one for one in verify(store) if one.is_defect]


@pytest.mark.checks("RMQDISK-57")
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"topics.json": NO_TOPICS}, f"such as T: a broker starts without its topics: {ROUTE}"),
        ({"topics.json": "{}", "topics.json.bak": TOPICS}, "topics.json.bak beside it has some"),
        ({"topics.json": NO_TOPICS, "topics.json.tmp": TOPICS}, "topics.json.tmp beside it has"),
        ({"topics.json": TOPICS.replace("T", "U")}, "1 topic that has queues here is not in it"),
        ({"topics.json.bak": NO_TOPICS}, "1 topic that has queues here is not in it"),
        ({"consumerOffset.json": OFFSETS, **OTHERS}, "it is not here, beside consumerOffset.json"),
        ({"topics.json": TOPICS.replace("4", "0")}, "no consumer reads the messages"),
        ({"topics.json": TOPICS, **OTHERS}, BEGIN),
        (
            {
                "topics.json": TOPICS,
                "consumerOffset.json": "{}",
                "consumerOffset.json.bak": OFFSETS,
            },
            "consumerOffset.json.bak beside it has some",
        ),
    ],
)
def test_what_config_lacks_is_told(
    config: dict[str, str], words: str, store: Path, tmp_path: Path
) -> None:
    """A file that is whole and empty costs as much as one of zeros, and was sound."""
    (only,) = found_with(store, config)
    assert "RMQDISK-57" == only.law
    assert words in only.message
    assert "copy the folder config away" in only.hint
    told = salvage_store(store, tmp_path / "out")
    assert [only.message] == [one.partition(": ")[2] for one in told.config_lacks if words in one]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"topics.json": TOPICS},
        {"topics.json": TOPICS, "consumerOffset.json": OFFSETS, **OTHERS},
        {"topics.json": TOPICS, "consumerOffset.json": '{"offsetTable":{}}', **OTHERS},
        {"topics.json.bak": TOPICS, "consumerOffset.json.bak": OFFSETS, **OTHERS},
        {"topics.json": '{"topicConfigTable":{"T":{},"U":{"readQueueNums":1}}}'},
        {"consumerOffset.json": OFFSETS},
    ],
)
def test_a_config_that_knows_the_queues_is_sound(config: dict[str, str], store: Path) -> None:
    """A new broker has no consumer group, and one file alone was copied by somebody."""
    assert [] == found_with(store, config)


def test_the_state_that_was_being_written_is_named(store: Path) -> None:
    """Of the whole file beside a broken one it said that nobody knows what it is."""
    (only,) = found_with(store, {"topics.json": "\0" * 9, "topics.json.tmp": TOPICS})
    assert "RMQDISK-43" == only.law
    assert "look first at topics.json.tmp beside it" in only.hint
    assert only.hint.startswith(COPY_FIRST)


NUMBERS = ("9" * 5000, "0" * 5000, f'"{"9" * 5000}"', "9" * 31, "-1", "+4", "4L", "+4S", '"\u0664"')


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_any_length_ends_no_run(number: str, store: Path, tmp_path: Path) -> None:
    """A number of 5000 digits in a whole file ended both verbs with a ValueError."""
    assert [] == found_with(store, {"topics.json": TOPICS.replace("4", number)})
    assert salvage_store(store, tmp_path / "out").is_whole


def test_the_hint_names_a_lowered_number_as_lawful(store: Path) -> None:
    """An operator lowers the number of queues, and the hint told to undo it."""
    (only,) = found_with(store, {"topics.json": TOPICS.replace("4", "0")})
    assert only.hint.startswith("nothing, if somebody lowered the number of queues of this")
    assert "nobody deleted these topics or groups, or lowered the number" in only.hint
    (only,) = found_with(store, {"topics.json": NO_TOPICS})
    assert only.hint.startswith(COPY_FIRST)
