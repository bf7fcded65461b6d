#!/usr/bin/env python3
"""What the tool says when something is wrong: the value, what is allowed, and never a password:
words_test.py REDLOCK [CASE...]"""

import json
import os
import re
import signal

import harness
from harness import (BROKEN, CONFIGURATION, HELD, INTERNAL, NOT_EXECUTABLE, NOT_FOUND, NO_QUORUM, UNDECIDED, USAGE,
                     Quorum, case, contains, ended, equal, main)

SECRET = 'sesame'


def refused(quorum, words, status, *said, env=None, exactly=None):
    """One line, which begins with the name of the tool; then what to change about masters."""
    result = ended(quorum.run(*words, env=env), status)
    lines = result.stderr.splitlines()
    assert lines[0].startswith('redlock: '), result.stderr
    assert all(line.startswith('redlock: on ') for line in lines[1:]), result.stderr  # what to change
    contains(lines[0], *said)
    if exactly is not None:
        equal(lines[0], 'redlock: ' + exactly)
    return lines[0]


@case('a wrong command line: which word, and what would be right', 0)
def _(quorum):
    run = ['a', '--', 'true']
    for words, exactly in (
            ([], 'no command given; redlock --help lists the commands'),
            (['run'], 'RESOURCE is missing; see redlock run --help'),
            (['run', '--ttl'], '--ttl: no value given; see redlock run --help'),
            (['run', 'a'], 'no command given; put it after --: redlock run RESOURCE -- COMMAND'),
            (['elect', 'a'], 'no command given; put it after --: redlock elect RESOURCE -- COMMAND'),
            (['pool', '--size', '3', 'a', '--'],
             'no command given; put it after --: redlock pool --size L RESOURCE -- COMMAND'),
            (['--config', '', 'run', *run], '--config: no value given; name a file'),
            (['run', '--password-file', '', *run], '--password-file: no value given; name a file'),
            (['run', '--tls-ca-file', '', *run], '--tls-ca-file: no value given; name a file'),
            (['run', '--ttl', '99999999999999999999', *run], "--ttl: '99999999999999999999' has no unit, did you mean "
             '99999999999999999999ms? Units are ms, s, m, h and d; see redlock run --help'),
            (['run', '--ttl', '1s', '--ttl', '2s', *run],
             '--ttl: more than one value given; see redlock run --help'),
            (['run', '--ttl', '-1s', *run],
             "--ttl: '-1s' is not a duration; write 500ms, 10s, 2m or 1m30s; see redlock run --help"),
            (['run', '--slots', '0', *run],
             "--slots: '0' is not a number from 1 to 4096; see redlock run --help"),
            (['run', '--slots', '1.5', *run],
             "--slots: '1.5' is not a number from 1 to 4096; see redlock run --help"),
            (['--clock-drift-factor', '0.9', 'run', *run],
             "--clock-drift-factor: '0.9' is not a number from 0 to 0.5; see redlock run --help"),
            (['--protocol', 'gaurded', 'run', *run],
             "--protocol: invalid value 'gaurded'; allowed: guarded, plain, did you mean guarded?; see redlock run --help"),
            (['--no-quarantine=perhaps', 'run', *run],
             "--no-quarantine: invalid value 'perhaps'; allowed: true, false"),
            (['run', '--parent-death=5', *run], "--parent-death: invalid value '5'; allowed: true, false"),
            (['run', '--fencing=', *run], "--fencing: invalid value ''; allowed: true, false"),
            (['--help=x'], '--help takes no value'),
            (['run', '--help=x', *run], '--help takes no value'),
            (['--version=2'], '--version takes no value'),
            (['status', '--prefix=', 'a', 'b'], "--prefix=: no value given; an empty one is written --prefix ''"),
            (['run', '--shared', '--exclusive', *run],
             '--shared cannot be combined with --exclusive; see redlock run --help'),
            (['run', 'a', 'echo', 'hi'], "unexpected argument 'echo'; put -- before the command: "
                                         'redlock run RESOURCE -- COMMAND'),
            (['elect', 'a', 'redis://:sesame@host'], "unexpected argument '...@host'; put -- before the command: "
                                                     'redlock elect RESOURCE -- COMMAND'),
            (['run', 'a', '-q', 'x'], 'unknown option -q; put -- before the command and its options'),
            (['run', '-n', *run], 'unknown option -n, did you mean --wait none?'),
            (['run', '--timeout', '3', *run], 'unknown option --timeout, did you mean --wait?'),
            (['run', '-x', *run], 'unknown option -x, did you mean --exclusive?'),
            (['status', '-n', 'a'], 'unknown option -n; see redlock status --help'),
            (['--frob'], 'unknown option --frob; see redlock --help'),
            (['run', '--size', '3', *run],
             'unknown option --size; --size is an option of pool'),
            (['metrics', '--wait', '3s'], 'unknown option --wait; --wait is an option of run, pool, acquire'),
            (['acquire', 'a', 'b'], "unexpected argument 'b'; see redlock acquire --help"),
            (['lock', 'a'], "unknown command 'lock', did you mean run or acquire?"),
            # no guess that is far off
            (['foo'], "unknown command 'foo'; redlock --help lists the commands"),
            (['man', 'foo'], "unknown command 'foo'; redlock --help lists the commands"),
            (['rnu', *run[:1]], "unknown command 'rnu', did you mean run?"),
            (['statu', 'a'], "unknown command 'statu', did you mean status?"),
            (['run', '--port', '6379', *run], 'unknown option --port; see redlock run --help'),
            (['run', '--max-time', '3s', *run], 'unknown option --max-time; see redlock run --help'),
            (['unlock', 'a'], "unknown command 'unlock', did you mean release?"),
            (['run', '--slots', '2', '--fifo', *run],
             '--fifo cannot be combined with --slots; see redlock run --help'),
            (['local', '33'], "N: '33' is not a number from 1 to 32; see redlock local --help"),
            (['completion', 'bsh'],
             "SHELL: invalid value 'bsh'; allowed: bash, zsh, fish, did you mean bash?; see redlock completion --help"),
            (['release', '--token', 'abc', 'a'],
             'the token has 3 characters; allowed: 40, all of them hexadecimal digits in lower case')):
        refused(quorum, words, USAGE, exactly=exactly)
    for words, meant in ((['--tll', '1s'], '--ttl'), (['--master', 'x'], '--masters'), (['--ttl', '5minutes'], '5m'),
                         (['--wait', 'forver'], 'forever')):
        contains(refused(quorum, ['run', *words, *run], USAGE), f'did you mean {meant}?')
    for value in ('999999999999d', '99999999999999999999s'):
        contains(refused(quorum, ['run', '--ttl', value, *run], USAGE), 'is too long', 'at most')
    refused(quorum, ['watch', '--interval', '0', 'a'], CONFIGURATION, exactly='--interval is 0s; allowed: 10ms or more')


@case('what a new user is likely to type: the message names the right thing')
def _():
    run_it = '; to run a command under a lock: redlock run RESOURCE -- COMMAND'
    with Quorum(1) as quorum:
        run = ['a', '--', 'true']
        for words, status, exactly in (
                # a forgotten word, or one of another program
                (['backup', '--', 'true'], USAGE, "unknown command 'backup'" + run_it),
                (['--', 'true'], USAGE, 'no command given' + run_it),
                (['exec', *run], USAGE, "unknown command 'exec', did you mean run?"),
                (['try', *run], USAGE, "unknown command 'try', did you mean run?"),
                (['renew', 'a'], USAGE, "unknown command 'renew', did you mean extend?"),
                (['steal', 'a'], USAGE, "unknown command 'steal', did you mean force-release?"),
                (['ls'], USAGE, "unknown command 'ls', did you mean list?"),
                (['check'], USAGE, "unknown command 'check', did you mean doctor?"),
                (['version'], USAGE, "unknown command 'version', did you mean --version?"),
                (['-V'], USAGE, 'unknown option -V, did you mean --version?'),
                (['run', '--nonblock', *run], USAGE, 'unknown option --nonblock, did you mean --wait none?'),
                (['run', '--no-wait', *run], USAGE, 'unknown option --no-wait, did you mean --wait none?'),
                (['acquire', '-w', '3s', 'a'], USAGE, 'unknown option -w, did you mean --wait?'),
                (['run', '--expire', '5s', *run], USAGE, 'unknown option --expire, did you mean --ttl?'),
                # the order of words
                (['--wait', '5s', 'run', *run], USAGE,
                 '--wait is an option of run; write: redlock run --wait ...'),
                (['run', 'a', '--', '--ttl', '5s', 'true'], NOT_FOUND,
                 "the command '--ttl' cannot be run: not found in PATH; options go before --"),
                (['run', 'a', '--', 'echo hi'], NOT_FOUND,
                 "the command 'echo hi' cannot be run: not found in PATH; to run a line of the shell, write: "
                 "sh -c 'LINE'"),
                (['run', '--', 'true'], USAGE, 'RESOURCE is missing; see redlock run --help'),
                (['acquire', *run], USAGE, 'acquire takes nothing after --' + run_it),
                (['release', *run], USAGE, 'release takes nothing after --'),
                (['release', 'a'], USAGE,
                 'no token: give the one that acquire has printed, in REDLOCK_TOKEN or with --token'),
                # values
                (['run', '--wait', '5', *run], USAGE,
                 "--wait: '5' has no unit, did you mean 5s? Units are ms, s, m, h and d; see redlock run --help"),
                (['run', '--ttl', '1e3s', *run], USAGE,
                 "--ttl: '1e3s' has an unknown unit; write whole numbers with ms, s, m, h or d, as in 500ms or 1m30s; "
                 'see redlock run --help'),
                (['run', '--ttl', '10 seconds', *run], USAGE, "--ttl: '10 seconds' has an unknown unit, did you mean "
                 '10s? Units are ms, s, m, h and d; see redlock run --help'),
                (['run', '--ttl', '5s2', *run], USAGE,
                 "--ttl: '5s2' has no unit; write whole numbers with ms, s, m, h or d, as in 500ms or 1m30s; "
                 'see redlock run --help'),
                (['run', '--wait', 'never', *run], USAGE,
                 "--wait: 'never' is not a wait; write none, forever or a duration such as 10s; see redlock run --help"),
                (['run', '-E', '256', *run], USAGE,
                 "--conflict-exit-code: '256' is not a number from 0 to 255; see redlock run --help"),
                (['run', '--password', SECRET, *run], USAGE,
                 'a password on the command line is visible to all users of this machine: use REDLOCK_PASSWORD, '
                 '--password-file or the file of --config'),
                # addresses
                (['status', '--masters', ',', 'a'], USAGE, '--masters: address 1 of 2 is empty; write '
                 'redis://host:6379, separated by commas; see redlock status --help'),
                (['--masters', '', 'status', 'a'], USAGE, '--masters: address 1 of 1 is empty; write '
                 'redis://host:6379, separated by commas; see redlock status --help'),
                (['status', '--masters', f'redis://:{SECRET}@a,,redis://b', 'a'], USAGE, '--masters: address 2 of 3 '
                 'is empty; write redis://host:6379, separated by commas; see redlock status --help'),
                # URLs
                (['run', '--masters', 'localhost:6379', *run], CONFIGURATION,
                 "master 'localhost:6379': not a URL; expected redis://host:6379/0, rediss://host:6379/0 or "
                 'unix:///path?db=0'),
                (['run', '--masters', f'redis://:{SECRET}/x@h', *run], CONFIGURATION,
                 "master 'redis://...@...': an '@' after the host; in a user or password write '/' as %2F, '?' as "
                 "%3F, '@' as %40"),
                (['run', '--masters', f'redis://{SECRET}@h:1', *run], CONFIGURATION,
                 "master 'redis://...@...': a user without a password; write user:password or :password before the "
                 "'@'"),
                (['run', '--masters', f"redis://:{SECRET}'@'@h:x", *run], CONFIGURATION,
                 "master 'redis://...@...': the address is malformed; expected host:port"),
                # members
                (['members', 'ad', 'h:1'], USAGE, "ACTION: invalid value 'ad'; allowed: add, remove, replace, found, max-ttl, did you mean add?; "
                 'see redlock members --help'),
                (['members', 'add', 'h:1'], USAGE,
                 "MASTER is 'h:1'; it must be in the list of masters, by its name"),
                # names of masters
                (['run', '--masters', 'redis://h?name=a b', *run], CONFIGURATION,
                 "master 'redis://h': the name has a character that is not allowed; write 1 to 64 letters, digits, "
                 "'-', '_' and '.'"),
                (['run', '--masters', 'redis://g,redis://h?name=a/b', *run], CONFIGURATION,
                 "the name of entry 2 of --masters is 'a/b'; allowed: letters, digits, '-', '_' and '.'"),
                (['run', '--masters', f'redis://h?name={"a" * 3000}', *run], CONFIGURATION,
                 'the name of entry 1 of --masters has 3000 characters; allowed: 1 to 64'),
                (['run', '--masters', 'redis://h?name=', *run], CONFIGURATION, "master 'redis://h': the name is empty"),
                (['run', '--masters', 'http://localhost:6379', *run], CONFIGURATION,
                 "master 'http://localhost:6379': scheme 'http' is not redis, rediss or unix"),
                (['run', '--masters', 'redis://localhost:99999', *run], CONFIGURATION,
                 "master 'redis://localhost:99999': port '99999' is not a number from 1 to 65535")):
            refused(quorum, words, status, exactly=exactly)
        equal(quorum.keys(), [])
        # A password that is wrong, and one that is missing.
        quorum.masters[0].ask('CONFIG', 'SET', 'requirepass', SECRET)
        for env, said in (({}, 'NOAUTH'), ({'REDLOCK_PASSWORD': 'other'}, 'WRONGPASS')):
            line = refused(quorum, ['run', '--wait', 'none', *run], NO_QUORUM, said, 'run redlock doctor', env=env)
            assert 'other' not in line, line


@case('a value that the quorum does not allow: its option, the value and the range', 0)
def _(quorum):
    masters = {'REDLOCK_MASTERS': 'redis://a,redis://b,redis://c'}
    for words, exactly in (
            (['--max-ttl', '30s', '--ttl', '31s'], '--ttl is 31s; allowed with a command: 50ms to --max-ttl, 30s'),
            (['--max-ttl', '30s', '--ttl', '0'], '--ttl is 0s; allowed with a command: 50ms to --max-ttl, 30s'),
            (['--max-ttl', '30s', '--ttl', '5ms'], '--ttl is 5ms; allowed with a command: 50ms to --max-ttl, 30s'),
            (['--max-ttl', '5s', '--ttl', '6s'],
             '--ttl is 6s; allowed with a command: 50ms to --max-ttl, 5s'),
            (['--max-ttl', '10ms'], '--max-ttl is 10ms; allowed with a command: 50ms to 1d'),
            (['--max-ttl', '2d'], '--max-ttl is 2d; allowed: 10ms to 1d'),
            (['--master-timeout', '0s'], '--master-timeout is 0s; allowed: 1ms to 1h'),
            (['--max-hold', '1s'], '--max-hold is 1s; allowed: 2s1ms (longer than --grace) or more, or 0 for '
             'no limit'),
            (['--grace', '6s'], '--grace is 6s; allowed: at most half of --ttl, 5s'),
            (['--protocol', 'plain', '--fencing'], "--protocol is 'plain'; fencing needs guarded"),
            (['--username', 'joe'], "--username is 'joe'; a user needs a password"),
            (['--masters', 'redis://ttl,redis://ttl'],
             "entry 2 of --masters is 'ttl:6379'; entry 1 of --masters is the same server; list each server once"),
            (['--tls-certificate-file', '/c'], '--tls-private-key-file is empty; a certificate needs its '
                                               'private key')):
        refused(quorum, ['run', *words, 'a', '--', 'true'], CONFIGURATION, env=masters, exactly=exactly)
    refused(quorum, ['acquire', '--max-ttl', '30s', '--ttl', '60s', 'a'], CONFIGURATION, env=masters,
            exactly='--ttl is 1m; allowed: 4ms to --max-ttl, 30s')
    for name, exactly in (('', "the name has 0 bytes; allowed: 1 to 1024"),
                          ('x' * 1025, "the name has 1025 bytes; allowed: 1 to 1024")):
        refused(quorum, ['run', name, '--', 'true'], USAGE, env=masters, exactly=exactly)


@case('a variable or a file: which one, and why it cannot be read', 0)
def _(quorum):
    run = ['run', 'a', '--', 'true']
    refused(quorum, run, CONFIGURATION, env={'REDLOCK_TTL': '5'},
            exactly="REDLOCK_TTL: '5' has no unit, did you mean 5s? Units are ms, s, m, h and d")
    refused(quorum, run, CONFIGURATION, env={'REDLOCK_MASTERS': ','},
            exactly='REDLOCK_MASTERS: address 1 of 2 is empty; write redis://host:6379, separated by commas')
    refused(quorum, run, CONFIGURATION, 'no masters', env={'REDLOCK_MASTERS': ''})
    refused(quorum, run, CONFIGURATION, '/no/such/file', env={'REDLOCK_PASSWORD_FILE': '/no/such/file', 'REDLOCK_MASTERS': 'redis://a'})
    refused(quorum, run, CONFIGURATION, env={'REDLOCK_NO_QUARANTINE': 'perhaps'},
            exactly="REDLOCK_NO_QUARANTINE: invalid value 'perhaps'; allowed: true, false")
    file = quorum.path('redlock.toml')
    for text, said in (('ttl = 5', "ttl: '...' has no unit. Units are ms"), ('ttl = ["1s", "2s"]', 'ttl: more than one value'),
                       ('masters = []', 'masters: the list is empty; write one or more values, or remove the line'),
                       ('ttl = []', 'ttl: the list is empty; write a value, or remove the line'),
                       ('wait = soon', 'wait: not valid TOML'), ('ttl', "not valid TOML (expected '=')")):
        file.write_text(text + '\n')
        refused(quorum, ['--config', file, *run], CONFIGURATION, f'{file}: line 1: {said}')
    for option in ('--config', '--password-file'):
        masters = {'REDLOCK_MASTERS': 'redis://a'}
        refused(quorum, [option, '/no/such', *run], CONFIGURATION, env=masters,
                exactly="'/no/such' cannot be read: No such file or directory")
        refused(quorum, [option, quorum.directory, *run], CONFIGURATION, env=masters,
                exactly=f"'{quorum.directory}' cannot be read: Is a directory")
    for option, limit in (('--config', 1024), ('--password-file', 64)):
        refused(quorum, [option, '/dev/zero', *run], CONFIGURATION, env=masters,
                exactly=f'/dev/zero is too large; allowed: at most {limit} KiB')
        file.write_text('#' * (limit * 1024 + 1))
        refused(quorum, [option, file, *run], CONFIGURATION, env=masters,
                exactly=f'{file} is too large; allowed: at most {limit} KiB')
    file.write_text('\n')
    contains(refused(quorum, ['--password-file', file, *run], CONFIGURATION, env=masters), 'first line', 'is empty')


@case('a command that cannot be run: which, and why')
def _(quorum):
    script = quorum.path('script')
    script.write_text('#!/no/such/interpreter\n')
    script.chmod(0o755)
    for command, status, why in (
            ('no-such-command', NOT_FOUND, 'not found in PATH'),
            ('/no/such', NOT_FOUND, 'No such file or directory'),
            ('', NOT_FOUND, 'the name is empty'),
            (quorum.directory, NOT_EXECUTABLE, 'Is a directory'),
            ('/etc/passwd', NOT_EXECUTABLE, 'Permission denied'),
            (script, NOT_FOUND, 'the interpreter in its first line does not exist')):
        refused(quorum, ['run', 'a', '--', command], status,
                exactly=f"the command '{command}' cannot be run: {why}")
    equal(quorum.keys(), [])


@case('an outcome names its lock, and an outage what tells more')
def _(quorum):
    quorum.holder('backup\x1b[2J')
    contains(refused(quorum, ['run', '--wait', 'none', 'backup\x1b[2J', '--', 'true'], HELD),
             "'backup\\x1b[2J': contended: ", 'of 3 masters hold it for another owner', ' ms, 2 of 3 votes needed')
    for master in quorum.masters[1:]:
        master.kill()
    contains(refused(quorum, ['run', '--wait', 'none', 'other', '--', 'true'], NO_QUORUM),
             "'other': no quorum: ", ' of 3 masters ', 'Connection refused', 'run redlock doctor for details')


@case('what a master is: a log-in, an ACL, a replica, no memory, another protocol')
def _(quorum):
    first, second, third = quorum.masters
    first.ask('ACL', 'SETUSER', 'elsewhere', 'on', '>' + SECRET, '~other:*', '&*', '+@all')
    first.ask('ACL', 'SETUSER', 'weak', 'on', '>' + SECRET, '~*', '&*', '+@all', '-eval', '-evalsha')
    second.ask('REPLICAOF', '127.0.0.1', '1')
    third.ask('CONFIG', 'SET', 'maxmemory', '1')
    third.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')

    def one(url, *said):
        words = ['run', '--wait', 'none', '--connect-timeout', '300ms', 'a', '--', 'true']
        line = refused(quorum, words, NO_QUORUM, *said, env={'REDLOCK_MASTERS': url})
        assert SECRET not in line, line

    one(first.url.replace('//', f'//:{SECRET}@'), 'without any password configured')
    one(first.url.replace('//', f'//joe:{SECRET}@'), 'WRONGPASS')
    one(first.url.replace('//', f'//elsewhere:{SECRET}@'), 'NOPERM', 'the ACL must allow the keys redlock:*')
    one(first.url.replace('//', f'//weak:{SECRET}@'), 'NOPERM', 'needs EVAL')
    one(first.url + '/99', first.name + '/99 error (ERR DB index is out of range)')
    one(second.url, 'is a replica (role:slave): configure the master')
    full = quorum.run('run', '--wait', 'none', 'a', '--', 'true', env={'REDLOCK_MASTERS': third.url})
    contains(ended(full, NO_QUORUM).stderr, 'OOM', 'maxmemory is reached')
    waiting = quorum.start('acquire', 'a', env={'REDLOCK_MASTERS': third.url})
    contains(waiting.stderr.readline(), "waiting for 'a': ", 'OOM')
    contains(waiting.stderr.readline(), 'maxmemory is reached')
    one('redis://127.0.0.1:1', '127.0.0.1:1 unreachable (connect: Connection refused)')
    one('redis://no-such-host.invalid', 'look-up of the name')
    one('unix:///no/such', '/no/such unreachable (connect: No such file or directory)')


@case(
    'a server without TLS is named, also after a wait that is shorter than connect_timeout',
    2, options=['--requirepass', SECRET])
def _(quorum):
    urls = [master.url.replace('redis://', f'rediss://:{SECRET}@') for master in quorum.masters]
    masters = {'REDLOCK_MASTERS': ','.join(urls)}
    names = ', '.join(master.name for master in quorum.masters)
    for words in (['run', '--wait', '300ms', 'a', '--', 'true'], ['acquire', '--wait', '300ms', 'a'],
                  ['run', '--wait', 'none', '--connect-timeout', '300ms', 'a', '--', 'true'],
                  ['status', '--connect-timeout', '300ms', 'a']):
        result = ended(quorum.run(*words, env=masters), NO_QUORUM)
        contains(result.stderr, f'redlock: {names} replied without TLS: enable TLS there (tls-port), or write '
                                'redis:// in place of rediss://\n')
        assert SECRET not in result.stderr, result.stderr
    result = quorum.run('doctor', '--clock-time', '10ms', '--connect-timeout', '300ms', env=masters)
    contains(ended(result, BROKEN).stdout, 'TLS handshake: no reply within 300 ms; the server replies without TLS',
             'enable TLS there (tls-port), or write redis:// in place of rediss://')
    # One that hangs has not replied.
    for master in quorum.masters:
        master.signal(signal.SIGSTOP)
    result = ended(quorum.run('run', '--wait', '300ms', 'a', '--', 'true', env=masters), NO_QUORUM)
    assert 'without TLS' not in result.stderr, result.stderr


@case('a key of another type than a lock has: which one, where, and how to remove it')
def _(quorum):
    first, second, third = quorum.masters
    for master in (first, second):
        master.ask('LPUSH', 'redlock:{a}', 'x')
        master.ask('LPUSH', 'redlock:{b}:fence', 'x')
    third.ask('LPUSH', 'redlock:{a}', 'x')
    on_two = f'redlock: on {first.name}, {second.name}: the key '
    type_of = 'has the type {}, a lock needs {}; if no other program uses it: DEL '
    for words, status, said in (
            (['status', 'a'], UNDECIDED, f'redlock: on {first.name}, {second.name}, {third.name}: the key redlock:{{a}} '
             + type_of.format('list', 'string') + 'redlock:{a}\n'),
            (['force-release', '--yes', 'a'], NO_QUORUM, type_of.format('list', 'string') + 'redlock:{a}\n'),
            (['run', '--wait', 'none', '--fencing', 'b', '--', 'true'], NO_QUORUM,
             on_two + 'redlock:{b}:fence ' + type_of.format('list', 'string') + 'redlock:{b}:fence\n'),
            (['acquire', '--wait', 'none', '--fencing', 'b'], NO_QUORUM, 'DEL redlock:{b}:fence\n')):
        contains(ended(quorum.run(*words), status).stderr, said)
    # The advice helps.
    for master in quorum.masters:
        master.ask('DEL', 'redlock:{a}', 'redlock:{b}:fence')
    ended(quorum.run('run', '--wait', 'none', '--fencing', 'b', '--', 'true'), 0)
    equal(ended(quorum.run('status', 'a'), 0).stderr, '')


@case('no password is shown, wherever it was put')
def _():
    with Quorum(1, options=['--requirepass', SECRET]) as quorum:
        master = quorum.masters[0]
        url = f'redis://joe:{SECRET}@h'
        run = ['--', 'true']
        for words in (
                ['--masters', url, url, 'run', 'a', *run], ['--masters', f'{url} {url}', 'run', 'a', *run],
                ['--masters', f'{url};{url}', 'run', 'a', *run], ['--masters', f'redis://x,{url}:y', 'run', 'a', *run],
                ['run', 'a', url, *run], ['run', '--ttl', url, 'a', *run], ['run', '--wait', url, 'a', *run],
                ['run', '--slots', url, 'a', *run], ['--protocol', url, 'run', 'a', *run],
                ['--clock-drift-factor', url, 'run', 'a', *run], [url], ['run', f'--{url}', 'a', *run],
                ['--config', url, 'run', 'a', *run], ['--password-file', url, 'run', 'a', *run],
                ['--password', SECRET, 'run', 'a', *run], [f'--password={SECRET}', 'run', 'a', *run],
                [f'--pasword={SECRET}', 'run', 'a', *run], ['--pasword', SECRET, 'run', 'a', *run],
                [f'-p{SECRET}', 'run', 'a', *run], ['man', url], ['completion', url], ['local', url],
                ['metrics', '--listen', url], ['run', '--wait', 'none', url, *run],
                ['doctor', '--username', url], ['doctor', url.upper().replace('@H', f'{SECRET}@h')],
                ['doctor', f'joe:{SECRET}@h:6379'], ['doctor', f':{SECRET}@h'], ['list', f'redis://h?password={SECRET}'],
                ['list', f'redis://h:{SECRET}'], ['list', f'Redis://h:{SECRET}/0'], [f'joe:{SECRET}@h']):
            result = quorum.run(*words)
            assert result.returncode not in (0, INTERNAL), (words, result)
            assert SECRET not in result.stdout + result.stderr, (words, result)

        file = quorum.path('redlock.toml')
        for text in (f'password = {SECRET}', f'password = "{SECRET}', f"password = '{SECRET}", f'password "{SECRET}"',
                     f'password = "{SECRET}" "{SECRET}"', f'password = ["{SECRET}", "{SECRET}"]', SECRET,
                     f'password = ["{SECRET}"', f'masters = ["{url}:y"]', f'masters = [{url}]', f'masters = {url}',
                     f'password = "\\{SECRET}"', f'paswsord = "{SECRET}"', f'ttl = "{url}"', f'verbose = "{url}"',
                     f'[run]\npassword = {SECRET}', 'password = 99999999999999999999', f'password = "{SECRET}\\q"',
                     f'password = 7{SECRET}', f'password = true{SECRET}', f'password = """{SECRET}',
                     f'password = {{ x = {SECRET} }}', f'password = [{SECRET}]', f'[{url}]\nttl = "1s"'):
            file.write_text(text + '\n')
            env = {'REDLOCK_MASTERS': ''} if 'masters' in text else {}
            result = quorum.run('--config', file, 'run', 'a', *run, env=env)
            equal(result.returncode, CONFIGURATION, text)
            assert SECRET not in result.stderr and '9999' not in result.stderr, (text, result.stderr)

        # A prefix that is a URL is printed where it is asked for.
        for words in (['doctor', '--clock-time', '10ms'], ['doctor', '--json', '--clock-time', '10ms']):
            result = quorum.run(*words, '--prefix', url)
            assert SECRET not in result.stdout + result.stderr, (words, result)

        # A right one, in everything that is printed about it.
        right = {'REDLOCK_MASTERS': master.url.replace('//', f'//:{SECRET}@')}
        for words in (['--verbose', 'run', 'a', '--', 'env'], ['--verbose', 'status', 'a'], ['status', '--json', 'a'],
                      ['doctor', '--clock-time', '10ms'], ['doctor', '--json', '--clock-time', '10ms'], ['metrics'],
                      ['list', '--json'], ['--verbose', 'acquire', '--json', 'b'], ['force-release', '--yes', 'b']):
            env = right if 'env' not in words else {'REDLOCK_PASSWORD': SECRET}
            result = quorum.run(*words, env=env)
            text = re.sub(f'REDLOCK_PASSWORD={SECRET}\n', '', result.stdout) + result.stderr
            assert SECRET not in text, (words, text)


@case('the words of the command that runs have no password', 1, options=['--requirepass', SECRET])
def _(quorum):
    secret_file = quorum.path('password')
    secret_file.write_text(SECRET + '\n')
    script = 'for p in $PPID $$; do tr "\\0" " " < /proc/$p/cmdline; echo; done'
    result = ended(quorum.run('--password-file', secret_file, 'run', 'a', '--', 'sh', '-c', script), 0)
    assert SECRET not in result.stdout, result.stdout


@case('standard output that takes nothing is an error, and a token that was not heard is given back')
def _(quorum):
    with open('/dev/full', 'w', encoding='utf-8') as full:
        for words in (['status', 'a'], ['list', '--json'], ['doctor', '--clock-time', '10ms'], ['--help'],
                      ['acquire', 'a'], ['metrics']):
            process = quorum.start(*words, stdout=full)
            _, err = process.communicate()
            equal(process.returncode, INTERNAL, words)
            contains(err, 'cannot write to standard output: No space left on device')
    limited = ['sh', '-c', 'ulimit -f 0; exec "$@" > "$0"', quorum.path('out'), harness.TOOL, 'acquire', 'a']
    contains(ended(quorum.run(*limited[1:], tool=limited[0]), INTERNAL).stderr, 'File too large')
    equal(quorum.keys(), [])


@case('settings of TLS without a master that uses it are warned of')
def _(quorum):
    result = ended(quorum.run('--tls-ca-file', '/ca', 'run', 'a', '--', 'true'), 0)
    equal(result.stderr, 'redlock: tls is configured, but no master is rediss://: nothing is encrypted\n')


@case('a resource may have any name, and JSON stays JSON')
def _(quorum):
    odd = os.fsdecode(b'a\nb\xff')
    ended(quorum.run('run', odd, '--', 'true'), 0)
    result = ended(quorum.run('status', '--json', odd), 0)
    equal(json.loads(result.stdout)[0]['state'], 'free')
    text = ended(quorum.run('status', 'a\nb'), 0).stdout
    contains(text, 'a\\x0ab: free')


@case('a server that is none: its name, and how to see why', 0)
def _(quorum):
    refused(quorum, ['local', '1'], NOT_FOUND, env={'REDLOCK_REDIS_SERVER': '/no/such'},
            exactly="REDLOCK_REDIS_SERVER is '/no/such', which cannot be run: No such file or directory")
    contains(refused(quorum, ['local', '1'], INTERNAL, env={'REDLOCK_REDIS_SERVER': '/bin/false'}),
             "'/bin/false' does not start", '/bin/false --port ')


if __name__ == '__main__':
    main()
