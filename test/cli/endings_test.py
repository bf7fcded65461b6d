#!/usr/bin/env python3
"""What the tool leaves on the masters, the terminal and its pipes when it ends: endings_test.py REDLOCK [CASE...]"""

import os
import signal

from harness import CONFIGURATION, LIMIT_S, LOST, alive, case, contains, ended, equal, main, until
from hearts import beating, beats, heart, supervisor_of


@case('a tool that comes too late to end its command leaves the keys to expire')
def _(quorum):
    for protocol in ('guarded', 'plain'):
        path = quorum.path(protocol)
        # The deadline is in the middle of the lease.
        process = quorum.start('--protocol', protocol, '--clock-drift-factor', '0.5', 'run', '--ttl', '6s', protocol, '--', *heart(path))
        pid = beating(path)
        supervisor = supervisor_of(process)
        os.kill(supervisor, signal.SIGSTOP)
        process.send_signal(signal.SIGSTOP)
        until(lambda: all(0 < one.ask('PTTL', f'redlock:{{{protocol}}}') < 2_800 for one in quorum.masters), 'the deadline')
        assert alive(pid)
        process.send_signal(signal.SIGCONT)
        equal(process.wait(LIMIT_S), LOST)
        assert not alive(pid)
        equal(quorum.keys(), [f'redlock:{{{protocol}}}'])
        until(lambda: not quorum.keys(), 'the end of the lease')


@case('--kill-margin: the command is killed that long before its lease ends')
def _(quorum):
    path = quorum.path('beats')
    result = quorum.run('run', '--ttl', '8s', '--max-hold', '8s', '--grace', '4s', '--kill-margin', '4s', 'a', '--', *heart(path))
    ended(result, LOST)
    assert beats(path)[-1][0] < beats(path)[0][0] + 6, beats(path)[-1]
    result = quorum.run('run', '--kill-margin', '3s', 'a', '--', 'true')
    contains(ended(result, CONFIGURATION).stderr, '--kill-margin is 3s; allowed: at most --grace, 2s')


if __name__ == '__main__':
    main()
