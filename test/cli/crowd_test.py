#!/usr/bin/env python3
"""Two hundred `redlock run` want one lock while masters are killed: crowd_test.py REDLOCK"""

import json
import random

from harness import Quorum, case, contains, equal, main, until

CROWD = 200

# What cron would start. Reads, waits and writes: two at once would lose one of the numbers, and
# the lines of one would stand between those of the other.
SCRIPT = '''
echo "begin $1" >> log
read number < number
sleep 0.005
echo $((number + 1)) > number
echo "end $1" >> log
'''


@case('two hundred append to one file without overlap while masters are killed and come back', 5)
def _(quorum):
    quorum.path('number').write_text('0\n')
    quorum.path('log').touch()
    # Masters restart here: what they have forgotten must not count.
    del quorum.env['REDLOCK_NO_QUARANTINE']
    quorum.env |= {'REDLOCK_MAX_TTL': '2s', 'REDLOCK_TTL': '2s', 'REDLOCK_WAIT': 'forever',
                   'REDLOCK_MASTER_TIMEOUT': '500ms', 'REDLOCK_CLOCK_OFFSET_BOUND': '100ms'}
    crowd = [
        quorum.start('run', 'file', '--', 'sh', '-c', SCRIPT, 'sh', number, cwd=quorum.directory)
        for number in range(CROWD)]

    def done():
        return quorum.path('log').read_text().count('end')

    for share in range(1, 5):
        until(lambda: done() >= CROWD * share / 6, 'progress')
        for master in random.sample(quorum.masters, 2):
            master.kill()
        until(lambda: done() >= CROWD * (share + 0.5) / 6, 'progress with two of five away')
        for master in quorum.masters:
            if master.process.returncode is not None:
                master.start()
        # Those that come back are in quarantine: only then are there others to lose.
        until(lambda: ready(quorum) == 5, 'the end of the quarantines')

    failed = [(one.returncode, one.stderr.read()) for one in crowd if one.wait() != 0]
    equal(failed, [])
    equal(int(quorum.path('number').read_text()), CROWD)
    lines = quorum.path('log').read_text().splitlines()
    equal(len(lines), 2 * CROWD)
    for begin, end in zip(lines[::2], lines[1::2]):
        equal((begin.split()[0], end.split()[0]), ('begin', 'end'))
        equal(begin.split()[1], end.split()[1])
    equal(len(set(lines)), 2 * CROWD)


def ready(quorum):
    """How many masters vote."""
    return json.loads(quorum.run('doctor', '--json', '--clock-time', '10ms').stdout)['admitted']


if __name__ == '__main__':
    main()
