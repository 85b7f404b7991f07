# SPDX-License-Identifier: Apache-2.0
"""Placing: one pure function from the facts of a commit log to the fate of each message.

RULES has the rules in the order in which they are asked. Each decides messages that none before it
has decided. No rule opens a file, and none looks at bytes: so a test can draw the truth. A rule
that lacks details of a row, or the units of a range, asks for them, and all is decided again.

Laws: RMQLOG-1 to RMQLOG-3, RMQDISK-24, RMQDISK-25, RMQDISK-44, RMQDISK-50, RMQDISK-55.
"""

from collections.abc import Callable
from dataclasses import dataclass

from segproof.stretches.rocketmq import file_rules, message_rules
from segproof.stretches.rocketmq.desk import Desk, Needs, Placement
from segproof.stretches.rocketmq.facts import Facts


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the decision table."""

    name: str
    why: str
    """What it decides, and the reason."""
    spares: str
    """Sentences: what looks alike, and the rule leaves to others."""
    decide: Callable[[Desk], None]


def place(facts: Facts) -> Placement | Needs:
    """Return what becomes of each message of a log, or what is needed to decide it.

    Pure: the same facts give the same answer, in however few rows the messages are. Memory: about
    100 bytes for each row, and some hundred for each one that is not in its place. Cost: n log n
    for n rows. Raises: never.
    """
    desk = Desk(facts)
    for number, rule in enumerate(RULES):
        desk.rule = number
        rule.decide(desk)
        needs = desk.needs()
        if needs is not None:
            return needs
    return desk.placement()


RULES = (
    Rule(
        "filler",
        "A message that says no more than that it was rolled back, under the topic of an earlier"
        " salvage, stands in the place of lost messages. So it is no message, and its bytes are a"
        " gap again.",
        "A message of a user that was rolled back stays a message.",
        file_rules.filler,
    ),
    Rule(
        "inside",
        "A message in the bytes of a broken one is a part of that one's body, and was never stored"
        " here: a body may hold a log of its own.",
        "Messages after bytes that were taken out stay, since others say the same begin of the"
        " file. So does a block that a disk wrote over a large message, since it is moved by whole"
        " sectors.",
        file_rules.inside,
    ),
    Rule(
        "file name",
        "A file begins where most of its messages say. No checksum covers a name, and messages that"
        " agree on another begin of their file do not do so by chance. A file of one message needs"
        " a unit that leads there, or a file that says its name in turn. A log was moved as a whole"
        " if all its files say one distance. Its only file says that alone, if it begins at a"
        " multiple of its length, as each file does.",
        "A file with one message whose offset is wrong keeps its name: one message proves nothing."
        " So does a file whose begin another file has by its own messages, and one in which a"
        " message says the place that the name gives. A file that was copied over this one keeps"
        " it too: units lead to where the name says, and none to where the messages say.",
        file_rules.file_name,
    ),
    Rule(
        "other store",
        "A file whose messages say their places is of another store if the units of the queues say"
        " that other messages lie there, and agree with the other files of the log. One or two such"
        " units are enough if the numbers of its queues do not go on either.",
        "A log whose queues are another store's as a whole stays: no file agrees with them. So does"
        " a file beside one damaged file of a queue.",
        file_rules.other_store,
    ),
    Rule(
        "other log",
        "Messages beside broken bytes are of a block that was copied over this log if no unit knows"
        " one of them, and more speaks against them than for them: units that lead to other"
        " messages there, or with their numbers elsewhere; numbers that do not rise in their queue;"
        " the address of another broker between messages of one, or at the end of the log if the"
        " numbers of their queues cannot go on there.",
        "The messages of a broker that got another address stay: they go on without damage, or"
        " their numbers rise and leave out no more than had room in the damage. So do messages"
        " that a unit of a queue knows, and those of a log whose units lead nowhere: the units are"
        " another store's.",
        file_rules.other_log,
    ),
    Rule(
        "in place",
        "A message that says the offset at which it lies is where it was written: a wrong offset"
        " says the right place with a chance of 1 in 2^63.",
        "A message that leaves no room for a blank end is not believed: no broker writes it there."
        " Nor is a message in the bytes of another one.",
        message_rules.place,
    ),
    Rule(
        "cut off",
        "Messages after a blank end that are older than the last message before it were cut off by"
        " an earlier recovery, and the log was written again before them.",
        "Messages stay if they are as young, or if a unit leads to them: the blank end is damage."
        " One wrong clock before it tells nothing: the middle one of three store times decides.",
        message_rules.after_blank,
    ),
    Rule(
        "offset",
        "A message belongs where it lies, and its offset is put right, if a unit leads to it there."
        " Between what is kept on both sides, few wrong bits of the offset show it too, or that the"
        " numbers of its queue go on. The numbers must go on if it is alone in its file and says a"
        " place in another one, or if it says the place of one that was made and stored with it, or"
        " a place beside that of another such message.",
        "A block that a disk wrote to a wrong place keeps its offsets: its sectors are missing"
        " where it says. So does a message of another store of the same size, and one into whose"
        " bytes a unit leads: another message lay there.",
        message_rules.offset,
    ),
    Rule(
        "copy",
        "The same messages are kept once, where they say: a second copy would be consumed twice.",
        "Other content at an offset that is taken is no copy.",
        message_rules.copy,
    ),
    Rule(
        "moved",
        "Messages belong where they say if that is free, and units lead to them there, or the"
        " numbers of their queues go on there. Where neither says anything, those are believed that"
        " touch a kept message there, end their file, say its begin and are alone in it, or say one"
        " distance with messages of their file that were moved; and between the files of the log"
        " two that say one distance or touch each other where they say, or one that is moved by"
        " whole sectors. Of two that say one place, units speak for those that they know.",
        "Messages are not moved if units or numbers contradict them, if units know a message"
        " that takes a part of the place, or if another broker stored them. Nor are messages"
        " before the first file: they may have expired. Nor is one message whose offset says a"
        " place far from all others, or one behind the end of what is kept that differs in two"
        " bits from where it lies. If nothing of the log is kept and no unit leads to a"
        " message, it is moved only if it touches one that a unit knows.",
        message_rules.moved,
    ),
    Rule(
        "room",
        "Between two messages of a file there are no bytes, or room for a message: else one of them"
        " is not where it was written. What was moved or restored gives way.",
        "A gap of 91 bytes contradicts nothing: one message without a body fills it.",
        message_rules.room,
    ),
    Rule(
        "nowhere",
        "What is left contradicts what is kept, or nothing tells its place.",
        "It spares nothing, since no later rule decides messages.",
        message_rules.nowhere,
    ),
)
