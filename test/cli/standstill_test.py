#!/usr/bin/env python3
"""What is begun again, and what is not: standstill_test.py REDLOCK"""

import threading
import time

from harness import case, contains, equal, main, until
from standstill import NOTABLE_S, Witness


class Told(Witness):
    """Watches nothing, and reports the given reasons."""

    def __init__(self, *reasons):  # pylint: disable=super-init-not-called
        self.reasons = list(reasons)

    def since(self, moment):
        return self.reasons.pop(0)


def attempts(witness, results):
    """The result in the end, how many attempts it took, and what was said of those before it."""
    left, said = list(results), []
    result = witness.again(lambda: left.pop(0), lambda one: one != 'ok', lambda *words: said.append(words))
    return result, len(results) - len(left), said


@case('a failure is begun again, and said, only if something stood still during it; twice at most')
def _():
    for reasons, results, expected in (
            ([''], ['failed', 'ok'], ('failed', 1, [])),
            (['the disk'], ['ok', 'failed'], ('ok', 1, [])),
            (['the disk'], ['failed', 'ok'], ('ok', 2, [('again, as the disk', 'failed')])),
            (['a', 'b', 'c'], ['failed'] * 4, ('failed', 3, [('again, as a', 'failed'), ('again, as b', 'failed')]))):
        equal(attempts(Told(*reasons), results), expected)


@case('a place that does not answer is seen while it lasts, and when it is over')
def _():
    witness = Witness()
    began = time.monotonic()
    goes_on = threading.Event()
    witness._watch('the slow one', goes_on.wait)  # pylint: disable=protected-access
    until(lambda: time.monotonic() - witness.looking['the slow one'] > NOTABLE_S, 'a standstill')
    contains(witness.since(began), 'stood still')
    goes_on.set()
    until(lambda: 'the slow one' in [place for _, _, place in witness.over], 'its end')
    contains(witness.since(began), 'stood still')


@case('what was over before a case began is none of its business')
def _():
    witness = Told()
    witness.over, witness.looking = [(10.0, 5.0, 'the disk')], {}
    contains(Witness.since(witness, 9.0), 'the disk stood still for 5.0 s')
    equal(Witness.since(witness, 11.0), '')


if __name__ == '__main__':
    main()
