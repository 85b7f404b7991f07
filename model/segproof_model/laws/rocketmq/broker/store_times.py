# SPDX-License-Identifier: Apache-2.0
"""Which store times of messages can be right, by those around them, the index and the born time."""

from segproof_model.rocketmq.format.message import Message

Times = tuple[int, int]
"""A first and a last time, both inclusive."""
FAR = 2**62
"""No time of a message is further away from 1970."""
POSSIBLE = (1, 253_402_300_799_999)
"""Times that a clock gives in milliseconds, up to the end of the year 9999."""
HOUR = 3_600_000
"""A clock may step back so far."""


def likely_time(message: Message, around: Times, told: Times | None) -> int:
    """Return the store time of a message, or a likely one if that is impossible.

    `told` are the first and last time that the index has.
    """
    time, born = message.store_timestamp, message.born_timestamp
    guess = nearest(nearest(born, POSSIBLE), around)
    is_born = born > HOUR
    is_no_time = nearest(time, POSSIBLE) != time and (time != 0 or is_born)
    if is_no_time or (is_born and time > 0 and abs(1000 * time - born) <= HOUR):
        for unit in ((1000 * time, 1000 * time + 999), (time // 1000,) * 2, (time // 10**6,) * 2):
            if unit[0] > 0 and is_born and abs(unit[0] - born) <= HOUR:
                guess = nearest(born, unit)
        indexed = guess if told is None else nearest(guess, told)
        return indexed if nearest(indexed, POSSIBLE) == indexed else guess
    if told is not None:
        if nearest(time, told) == time and told[0] > -FAR:
            return time
        indexed = nearest(guess, told)
        far, far_indexed = outside(time, around), outside(indexed, around)
        is_nearer = far == far_indexed == 0 and (
            abs(indexed - born) < min(1000, abs(time - born) - 1000)
        )
        time = indexed if far_indexed < far or is_nearer else time
    is_own = born > 0 and abs(time - born) < 1000
    return guess if outside(time, around) > HOUR and not is_own else time


def filled(times: list[int], bound: int) -> list[int]:
    """Return times with the one before in the place of each that no clock gives; the bound where
    none lies before it."""
    found: list[int] = []
    for time in times:
        last = found[-1] if found else bound
        found.append(time if nearest(time, POSSIBLE) == time else last)
    return found


def nearest(time: int, bounds: Times) -> int:
    """Return the time in the bounds that is nearest to one."""
    return max(bounds[0], min(bounds[1], time))


def outside(time: int, bounds: Times) -> int:
    """Return how far a time is outside of the bounds."""
    return abs(time - nearest(time, bounds))
