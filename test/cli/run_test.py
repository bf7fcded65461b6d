#!/usr/bin/env python3
"""`redlock run`, as a command meets it: run_test.py REDLOCK [CASE...]"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

import harness
from harness import (
    CONFIGURATION, HELD, LIMIT_S, LOST, NO_QUORUM, Relay, Skip, case, contains, ended, equal, listed, main, until,
    with_module)
from hearts import beating, beats, heart, now, supervisor_of
from terminals import Terminal


@case("the command's exit status is the tool's, and a signal that ended it is told as a shell tells it")
def _(quorum):
    for status in (0, 1, 7, 125, 255):
        ended(quorum.run('run', 'a', '--', 'sh', '-c', f'exit {status}'), status)
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
        script = f'"$0" run a -- sh -c "kill -{number} \\$\\$"; exit $?'
        ended(quorum.run('-c', script, harness.TOOL, tool='sh'), 128 + number)
    equal(quorum.keys(), [])


@case('a lock that may not be removed is reported, and expires')
def _(quorum):
    quorum.everywhere('ask', 'ACL', 'SETUSER', 'default', '-del')
    result = ended(quorum.run('run', '--wait', 'none', 'a', '--', 'true'), 0)
    contains(result.stderr, "'a' was not released, and expires with its ttl: ", 'ERR ')
    equal(quorum.keys(), ['redlock:{a}'])


@case('--skip-if-held ends with 0 without the command while the lock is held, also after a wait')
def _(quorum):
    quorum.holder('a')
    result = ended(quorum.run('run', '--skip-if-held', 'free', '--', 'sh', '-c', 'echo ran; exit 3'), 3)
    equal(result.stdout, 'ran\n')
    quorum.holder('b', '--slots', '1')
    for words in (('run', 'a'), ('pool', '--size', '1', 'b')):
        result = ended(quorum.run(words[0], '--skip-if-held', '--wait', '1s', *words[1:], '--', 'echo', 'ran'), 0)
        equal(result.stdout, '')
        contains(result.stderr, 'skipped')


@case('--skip-if-held does not take the key of another program for a holder')
def _(quorum):
    for name, words in (('value', ['SET', 'redlock:{value}', 'x']), ('list', ['RPUSH', 'redlock:{list}', 'x'])):
        quorum.everywhere('ask', *words, first=2)
        ended(quorum.run('run', '--skip-if-held', name, '--', 'true'), HELD)


@case('--skip-if-held does not take votes that were split among several clients for a holder')
def _(quorum):
    command = ('run', '--skip-if-held', 'a', '--', 'echo', 'ran')
    for left, status in (('400', 0), ('60000', HELD)):
        for number, master in enumerate(quorum.masters[:2]):
            master.ask('SET', 'redlock:{a}', str(number) * 40, 'PX', left)
        result = ended(quorum.run(*command), status)
        equal(result.stdout, '' if status else 'ran\n')
    contains(result.stderr, 'contended')


@case('--skip-if-held does not take slow masters for a holder')
def _(quorum):
    slow = [Relay(master, seconds=0.3) for master in quorum.masters]
    words = ('run', '--skip-if-held', '--wait', 'none', '--ttl', '200ms', '--master-timeout', '5s', 'a')
    result = ended(quorum.run(*words, '--', 'echo', 'ran', env=listed(*slow)), HELD)
    equal(result.stdout, '')
    contains(result.stderr, 'validity exhausted')


@case(
    'who waits is told at once of what is known: a wrong password, a quarantine; and later, that another has it',
    options=['--requirepass', 'right'])
def _(quorum):
    right, wrong = ({'REDLOCK_PASSWORD': word} for word in ('right', 'wrong'))
    quorum.env |= {'REDLOCK_MAX_TTL': '3s', 'REDLOCK_TTL': '3s'}  # a short quarantine, which delays the holder below as well
    for words in (['run', 'a', '--', 'true'], ['acquire', 'a']):
        waiting = quorum.start(*words, env=wrong)
        contains(waiting.stderr.readline(), "waiting for 'a': not ready, 0 of 3", 'WRONGPASS')
        contains(waiting.stderr.readline(), f'on {quorum.masters[0].name}, ', 'correct the user and the password')
        waiting = quorum.start(*words, env=right | {'REDLOCK_NO_QUARANTINE': 'false'})
        contains(waiting.stderr.readline(), "waiting for 'a': ", ' s until the quarantine ends')
    quorum.env |= right
    quorum.holder('a')
    waiting = quorum.start('acquire', '--wait', '5s', 'a')
    contains(waiting.stderr.readline(), "waiting for 'a': held by ")
    quorum.everywhere('kill')
    contains(waiting.stderr.read(), 'no quorum', 'start it; check its port')


@case('a wait that is shorter than the quarantine ends at once, and says how long the quarantine lasts')
def _(quorum):
    new = {'REDLOCK_NO_QUARANTINE': 'false'}
    began = time.monotonic()
    for words in (['run', '--wait', '20s', 'a', '--', 'true'], ['acquire', '--wait', '20s', 'a']):
        said = ended(quorum.run(*words, env=new), NO_QUORUM).stderr
        assert re.search(r'the quarantine of the masters ends in [23]\d s: wait longer than that', said), said
    assert time.monotonic() - began < 30


@case('a quarantine is counted down on a terminal')
def _(quorum):
    quorum.env |= {'REDLOCK_NO_QUARANTINE': 'false', 'REDLOCK_MAX_TTL': '3s', 'REDLOCK_TTL': '3s'}
    said, status = Terminal(quorum, harness.TOOL, 'run', 'a', '--', 'true').ends()
    equal(status, 0)
    left = [int(number) for number in re.findall(r"waiting for 'a': (\d+) s until", said)]
    assert len(left) >= 2 and left == sorted(left, reverse=True) and left[0] <= 6, said
    assert said.endswith('\r\x1b[K'), said


@case('a wait lasts as long as it says, also where no master answers')
def _(quorum):
    quorum.everywhere('signal', signal.SIGSTOP)
    for words in (['run', '--wait', '4s', 'a', '--', 'true'], ['acquire', '--wait', '4s', 'a']):
        for tries_left in (2, 1, 0):  # a busy machine takes longer once, and not each time
            began = now()
            ended(quorum.run('--connect-timeout', '10s', *words), NO_QUORUM)
            took = now() - began
            assert took > 3.9, took
            if took < 7:  # not twice as long
                break
            assert tries_left, took


@case('a ttl that is not given is no longer than --max-ttl allows')
def _(quorum):
    for words in (['run', 'a', '--', 'true'], ['pool', '--size', '2', 'a', '--', 'true'], ['elect', 'a', '--', 'true'],
                  ['run', '--shared', 'a', '--', 'true'], ['size']):
        ended(quorum.run('--max-ttl', '3s', *words), 0)
    env = {'REDLOCK_TOKEN': ended(quorum.run('--max-ttl', '3s', 'acquire', 'b'), 0).stdout.strip()}
    left = [master.ask('PTTL', 'redlock:{b}') for master in quorum.masters]
    assert max(left) <= 3_000 and -2 not in left, left
    ended(quorum.run('--max-ttl', '3s', 'extend', 'b', env=env), 0)
    ended(quorum.run('--max-ttl', '3s', 'attach', 'b', '--', 'true', env=env), 0)


@case('a child sees what its lock is, and nothing of a lock around it')
def _(quorum):
    script = ('echo "$REDLOCK_RESOURCE"; echo "$REDLOCK_TOKEN"; echo "$REDLOCK_DEADLINE";'
              'echo "${REDLOCK_FENCING_TOKEN-none} ${REDLOCK_SLOT-none}"')
    outer = f'{script}; exec "$0" run --ttl 20s "in ner" -- sh -c \'{script}\''
    before = time.time() * 1000
    result = quorum.run('run', '--fencing', '--slots', '2', 'outer', '--', 'sh', '-c', outer, harness.TOOL)
    lines = ended(result, 0).stdout.splitlines()
    equal((lines[0], lines[4], len(lines[5])), ('outer', 'in ner', 40))
    assert before + 15_000 < int(lines[6]) < time.time() * 1000 + 20_000, lines
    assert lines[1] != lines[5] and lines[2] != lines[6], lines
    assert 'none' not in lines[3], lines
    equal(lines[7], 'none none')


@case('the standard streams and other open files are the command\'s own, and none is the tool\'s')
def _(quorum):
    data = bytes(range(256)) * 4096
    result = quorum.run('run', 'a', '--', 'cat', input=data, text=False)
    equal(result.returncode, 0)
    assert result.stdout == data
    equal(result.stderr, b'')
    result = quorum.run('run', 'a', '--', 'sh', '-c', 'echo out; echo err >&2')
    equal((result.stdout, result.stderr), ('out\n', 'err\n'))
    with open(quorum.path('other'), 'w', encoding='utf-8') as other:
        number = other.fileno()
        result = quorum.run(
            'run', 'a', '--', 'sh', '-c', f'echo written >&{number}; ls /proc/self/fd',
            pass_fds=[number])
    equal(quorum.path('other').read_text(), 'written\n')
    found = {int(line) for line in result.stdout.split()}
    equal(len(found - {0, 1, 2, number}), 1, 'beside the directory that ls reads')


@case('signals are forwarded to the whole group, and the command decides')
def _(quorum):
    script = ('for s in HUP INT QUIT USR1 USR2; do trap "echo $s" $s; done;'
              'trap "echo TERM; exit 5" TERM; echo ready; while :; do sleep 0.05; done')
    process, _ = quorum.under(script, shell='bash')
    for name in ('HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'TERM'):
        process.send_signal(getattr(signal, f'SIG{name}'))
        # A child of bash, caught between fork and exec, reports the one before as well.
        until(lambda name=name: process.stdout.readline() == name + '\n', f'the word of {name}')
    equal(process.wait(), 5)
    equal(quorum.keys(), [])


@case('what was ignored before, as with nohup, stays ignored')
def _(quorum):
    def ignoring():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process, _ = quorum.under('echo ready; read line; echo end', stdin=subprocess.PIPE, preexec_fn=ignoring)
    process.send_signal(signal.SIGHUP)
    until(lambda: not pending(process.pid, signal.SIGHUP), 'the delivery of a signal')
    out, _ = process.communicate('\n')
    equal((out, process.returncode), ('end\n', 0))


def pending(pid, number):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    masks = [int(line.split()[1], 16) for line in status.splitlines() if 'Pnd' in line.split(':')[0]]
    return any(mask >> (number - 1) & 1 for mask in masks)


@case('a signal while waiting ends the tool and leaves no key, also if its supervisor is stopped')
def _(quorum):
    holder = quorum.holder('a')
    for words, number, stops in ((['run'], signal.SIGTERM, False), (['run'], signal.SIGINT, False), (['run'], signal.SIGHUP, False),
                                 (['elect'], signal.SIGTERM, False), (['run'], signal.SIGTERM, True)):
        waiting = quorum.start(*words, 'a', '--', 'echo', 'ran')
        quorum.has_waiter()
        if stops:
            os.kill(supervisor_of(waiting), signal.SIGSTOP)
        waiting.send_signal(number)
        equal((waiting.wait(), waiting.stdout.read()), (-number, ''))
    holder.terminate()
    holder.wait()
    equal(quorum.keys(), [])


@case('a lock that is gone on a majority ends the command at once, without a grace, and the tool says how it was lost')
def _(quorum):
    for protocol, gone in (('guarded', ['DEL', 'redlock:{a}']), ('plain', ['FLUSHALL'])):
        warned = quorum.path(f'warned-{protocol}')
        script = f'trap "sleep 1; echo TERM > {warned}" TERM; echo here; while :; do sleep 0.02; done'
        process, _ = quorum.under(script, '--protocol', protocol, '--ttl', '9s', '--grace', '4s')
        quorum.everywhere('ask', *gone, first=2)
        equal(process.wait(), LOST)
        contains(process.stderr.read(), "lost 'a' (expired), stopping the command, 2 of 3 votes needed: ")  # the shell may tell of TERM
        assert not warned.exists()


@case('nobody has the lock before the command that has lost it is dead')
def _(quorum):
    for protocol in ('guarded', 'plain'):
        first, second = quorum.path(f'{protocol}-1'), quorum.path(f'{protocol}-2')
        both = []
        for path in (first, second):
            both.append(quorum.start('--protocol', protocol, 'run', '--ttl', '4s', '--max-hold', '4s', protocol, '--', *heart(path)))
            beating(path)
        assert beats(first)[-1][0] < beats(second)[0][0], (beats(first)[-1], beats(second)[0])
        equal([process.wait() for process in both], [LOST, LOST])


@case('a signal while masters are slow to release the lock leaves the status the command\'s')
def _(quorum):
    pids = ' '.join(str(master.process.pid) for master in quorum.masters[:2])
    process, _ = quorum.under(f'kill -STOP {pids}; echo stopped; exit 4', '--master-timeout', '5s')
    time.sleep(0.5)
    process.terminate()
    equal(process.wait(), 4)


@case('--at-least keeps the lock after a command that was quick')
def _(quorum):
    began = now()
    process = quorum.start('run', '--at-least', '1500ms', '--ttl', '1s', 'a', '--', 'sh', '-c', 'exit 6')
    until(quorum.keys, 'the key')
    ended(quorum.run('run', '--skip-if-held', 'a', '--', 'sh', '-c', 'exit 1'), 0)
    equal(process.wait(), 6)
    assert now() >= began + 1.5
    equal(quorum.keys(), [])


@case('--at-least is kept up to --max-hold, whose end is no loss then')
def _(quorum):
    began = now()
    ended(quorum.run('run', '--ttl', '1s', '--at-least', '1s', '--max-hold', '1s', 'a', '--', 'sh', '-c', 'exit 6'), 6)
    assert now() >= began + 1
    result = quorum.run('run', '--ttl', '1s', '--max-hold', '1s', 'a', '--', 'true', env={'REDLOCK_AT_LEAST': '2s'})
    contains(ended(result, CONFIGURATION).stderr, '--at-least is 2s; allowed: at most --max-hold, 1s')


@case('a lock that is lost in the time of --at-least is reported')
def _(quorum):
    process = quorum.start('run', '--at-least', '1m', '--ttl', '1s', 'a', '--', 'true')
    equal(process.stdout.read(), '')  # closed: the command has ended
    quorum.everywhere('ask', 'FLUSHALL', first=2)
    equal(process.wait(LIMIT_S), LOST)
    contains(process.stderr.read(), 'after the command had ended')


@case('a signal in the time of --at-least, the longest one included, leaves the lock to its ttl')
def _(quorum):
    for longest in ('10m', '106751d23h47m16s854ms'):
        process = quorum.start('run', '--at-least', longest, '--ttl', '1s', 'a', '--', 'sh', '-c', 'echo ran')
        equal(process.stdout.read(), 'ran\n')  # closed: the command has ended
        process.terminate()
        equal(process.wait(), -signal.SIGTERM)
        equal(quorum.keys(), ['redlock:{a}'])
        until(lambda: not quorum.keys(), 'the end of the lease')


@case('the file of the password is replaced under a command that has its lock, and no process inherits it')
def _(quorum):
    quorum.everywhere('ask', 'ACL', 'SETUSER', 'locker', 'on', '>first', '~*', '&*', '+@all')
    password, notes = quorum.path('password'), quorum.path('inherited')
    password.write_text('first\n')
    with contextlib.suppress(Skip):
        quorum.env |= with_module('INHERITED') | {'INHERITED_NOTES': str(notes)}
    quorum.env |= {'REDLOCK_USERNAME': 'locker', 'REDLOCK_PASSWORD_FILE': str(password)}
    process, _ = quorum.under('echo held; read line; echo $line', stdin=subprocess.PIPE)
    password.write_text('second\n')
    for master in quorum.masters:
        master.ask('ACL', 'SETUSER', 'locker', '>second', '<first')
        assert master.ask('CLIENT', 'KILL', 'USER', 'locker') > 0
        until(lambda master=master: 'user=locker' in master.ask('CLIENT', 'LIST'), 'the next login')
    equal(process.communicate('done\n', timeout=harness.LIMIT_S), ('done\n', ''))
    ended(process, 0)
    noted = notes.read_text() if notes.exists() else ''
    assert str(password) not in noted, noted


if __name__ == '__main__':
    main()
