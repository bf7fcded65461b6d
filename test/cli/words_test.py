#!/usr/bin/env python3
"""What the tool says when something is wrong: the value, what is allowed, and never a password:
words_test.py REDLOCK [CASE...]"""

import json
import os
import re
import signal

import harness
from harness import (CONFIGURATION, HELD, INTERNAL, NOT_EXECUTABLE, NOT_FOUND, NO_QUORUM, UNDECIDED, USAGE,
                     case, contains, ended, equal, listed, main)

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
            (['--config', '', 'run', *run], '--config: no value given; name a file'),
            (['run', '--ttl', '99999999999999999999', *run], "--ttl: '99999999999999999999' has no unit, did you mean "
             '99999999999999999999ms? Units are ms, s, m, h and d; see redlock run --help'),
            (['run', '--ttl', '1s', '--ttl', '2s', *run],
             '--ttl: more than one value given; see redlock run --help'),
            (['run', '--ttl', '-1s', *run],
             "--ttl: '-1s' is not a duration; write 500ms, 10s, 2m or 1m30s; see redlock run --help"),
            (['run', '--slots', '1.5', *run],
             "--slots: '1.5' is not a number from 1 to 4096; see redlock run --help"),
            (['--clock-drift-factor', '0.9', 'run', *run],
             "--clock-drift-factor: '0.9' is not a number from 0 to 0.5; see redlock run --help"),
            (['--protocol', 'gaurded', 'run', *run],
             "--protocol: invalid value 'gaurded'; allowed: guarded, plain, did you mean guarded?; see redlock run --help"),
            (['--no-quarantine=perhaps', 'run', *run],
             "--no-quarantine: invalid value 'perhaps'; allowed: true, false"),
            (['--help=x'], '--help takes no value'),
            (['status', '--prefix=', 'a', 'b'], "--prefix=: no value given; an empty one is written --prefix ''"),
            (['elect', 'a', 'redis://:sesame@host'], "unexpected argument '...@host'; put -- before the command: "
                                                     'redlock elect RESOURCE -- COMMAND'),
            (['run', 'a', '-q', 'x'], 'unknown option -q; put -- before the command and its options'),
            (['run', '-n', *run], 'unknown option -n, did you mean --wait none?'),
            (['status', '-n', 'a'], 'unknown option -n; see redlock status --help'),
            (['--frob'], 'unknown option --frob; see redlock --help'),
            (['metrics', '--wait', '3s'], 'unknown option --wait; --wait is an option of run, pool, acquire'),
            (['local', '0'], "N: '0' is not a number from 1 to 32; see redlock local --help"),
            (['local', '--faults', 'randm'],
             "--faults: invalid value 'randm'; allowed: none, keys, random, did you mean random?; see redlock local --help"),
            (['acquire', 'a', 'b'], "unexpected argument 'b'; see redlock acquire --help"),
            (['lock', 'a'], "unknown command 'lock', did you mean run or acquire?"),
            # no guess that is far off
            (['foo'], "unknown command 'foo'; redlock --help lists the commands"),
            (['foo', '--help'], "unknown command 'foo'; redlock --help lists the commands"),
            (['man', 'foo'], "unknown command 'foo'; redlock --help lists the commands"),
            (['rnu', *run[:1]], "unknown command 'rnu', did you mean run?"),
            (['run', '--slots', '2', '--fifo', *run],
             '--fifo cannot be combined with --slots; see redlock run --help'),
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


@case('what a new user is likely to type: the message names the right thing', 0)
def _(quorum):
    run_it = '; to run a command under a lock: redlock run RESOURCE -- COMMAND'
    quorum.env |= listed('redis://127.0.0.1:1')
    run = ['a', '--', 'true']
    for words, status, exactly in (
            # a forgotten word, or one of another program
            (['backup', '--', 'true'], USAGE, "unknown command 'backup'" + run_it),
            (['--', 'true'], USAGE, 'no command given' + run_it),
            (['version'], USAGE, "unknown command 'version', did you mean --version?"),
            # the order of words
            (['--wait', '5s', 'run', *run], USAGE,
             '--wait is an option of run; write: redlock run --wait ...'),
            (['run', 'a', '--', '--ttl', '5s', 'true'], NOT_FOUND,
             "the command '--ttl' cannot be run: not found in PATH; options go before --"),
            (['run', 'a', '--', 'echo hi'], NOT_FOUND,
             "the command 'echo hi' cannot be run: not found in PATH; to run a line of the shell, write: "
             "sh -c 'LINE'"),
            (['acquire', *run], USAGE, 'acquire takes nothing after --' + run_it),
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
            *[(words, USAGE, 'a password on the command line is visible to all users of this machine: use '
               'REDLOCK_PASSWORD, --password-file or the file of --config')
              for words in (['run', '--password', SECRET, *run], ['status', 'a', '--password'])],
            # addresses
            (['status', '--masters', f'redis://:{SECRET}@a,,redis://b', 'a'], USAGE, '--masters: address 2 of 3 '
             'is empty; write redis://host:6379, separated by commas; see redlock status --help'),
            (['status', '--masters', f'redis://a,redis://b:4711,{SECRET},9@c:6379', 'a'], USAGE, '--masters: address 4 '
             'of 4 has no redis://; if a password has a comma, write %2C in place of it; see redlock status --help'),
            # URLs
            (['run', '--masters', 'localhost:6379', *run], CONFIGURATION,
             "master 'localhost:6379': not a URL; expected redis://host:6379/0, rediss://host:6379/0 or "
             'unix:///path?db=0'),
            (['run', '--masters', f'redis://:{SECRET}/x@h', *run], CONFIGURATION,
             "master 'redis://...@...': an '@' too many, or after the host; in a user or password write '/' as %2F, '?' as "
             "%3F, '@' as %40"),
            (['run', '--masters', 'redis://g,redis://h?name=a/b', *run], CONFIGURATION,
             "the name of entry 2 of --masters is 'a/b'; allowed: letters, digits, '-', '_' and '.'")):
        refused(quorum, words, status, exactly=exactly)


@case('a value that the quorum does not allow: its option, the value and the range', 0)
def _(quorum):
    masters = listed('redis://a', 'redis://b', 'redis://c')
    for words, exactly in (
            (['--max-ttl', '30s', '--ttl', '31s'], '--ttl is 31s; allowed with a command: 50ms to --max-ttl, 30s'),
            (['--ttl', '49ms'], '--ttl is 49ms; allowed with a command: 50ms to the max_ttl of the quorum, at most 1d'),
            (['--max-ttl', '30s', '--ttl', '5ms'], '--ttl is 5ms; allowed with a command: 50ms to --max-ttl, 30s'),
            (['--max-ttl', '10ms'], '--max-ttl is 10ms; allowed with a command: 50ms to 1d'),
            (['--max-ttl', '2d'], '--max-ttl is 2d; allowed: 10ms to 1d'),
            (['--max-hold', '1s'], '--max-hold is 1s; allowed: 2s1ms (longer than --grace) or more, or 0 for '
             'no limit'),
            (['--kill-margin', '3s'], '--kill-margin is 3s; allowed: at most --grace, 2s'),
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
    refused(quorum, ['acquire', '--ttl', '2d', 'a'], CONFIGURATION, env=masters,
            exactly='--ttl is 2d; allowed: 4ms to 1d')
    refused(quorum, ['run', '', '--', 'true'], USAGE, env=masters, exactly='the name has 0 bytes; allowed: 1 to 1024')


@case('a variable or a file: which one, and why it cannot be read', 0)
def _(quorum):
    run = ['run', 'a', '--', 'true']
    refused(quorum, run, CONFIGURATION, env={'REDLOCK_TTL': '5'},
            exactly="REDLOCK_TTL: '5' has no unit, did you mean 5s? Units are ms, s, m, h and d")
    refused(quorum, run, CONFIGURATION, env={'REDLOCK_MASTERS': ','},
            exactly='REDLOCK_MASTERS: address 1 of 2 is empty; write redis://host:6379, separated by commas')
    refused(quorum, run, CONFIGURATION, 'no masters', env={'REDLOCK_MASTERS': ''})
    for value in ('5', 'yes please', '-1'):
        refused(quorum, run, CONFIGURATION, env={'REDLOCK_SHARED': value},
                exactly=f"REDLOCK_SHARED: invalid value '{value}'; allowed: true, false")
    for name in ('REDLOCK_MASTERS', 'REDLOCK_PASSWORD', 'REDLOCK_PREFIX'):
        refused(quorum, run, CONFIGURATION, env={name: 'secret\n'}, exactly=f'{name}: the value ends with a line break; remove it')
    file = quorum.path('file')
    masters = listed('redis://a')
    for option, limit in (('--config', 1024), ('--password-file', 4096)):
        file.write_text('#' * (limit * 1024 + 1))
        for name, why in (('/no/such', "'/no/such' cannot be read: No such file or directory"),
                          (quorum.directory, f"'{quorum.directory}' cannot be read: Is a directory"),
                          ('/dev/zero', f'/dev/zero is too large; allowed: at most {limit} KiB'),
                          (file, f'{file} is too large; allowed: at most {limit} KiB')):
            where = '--password-file: ' if option == '--password-file' else ''
            refused(quorum, [option, name, *run], CONFIGURATION, env=masters, exactly=where + why)
    file.write_text('\n')
    contains(refused(quorum, ['--password-file', file, *run], CONFIGURATION, env=masters), 'first line', 'is empty')
    file.write_text('password-file = "/no/such"\n')
    refused(quorum, ['--config', file, *run], CONFIGURATION, env=masters,
            exactly="--password-file: '...' cannot be read: No such file or directory")


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
        # Only what its interpreter lacks is found under the lock. Without masters, the others would have no quorum.
        env = None if command == script else listed('redis://127.0.0.1:1')
        refused(quorum, ['run', 'a', '--', command], status, env=env,
                exactly=f"the command '{command}' cannot be run: {why}")
    equal(quorum.keys(), [])


@case('an outcome names its lock, and an outage each master and what tells more; the command does not run')
def _(quorum):
    quorum.holder('backup\x1b[2J')
    for words in (['run', '--wait', 'none', 'backup\x1b[2J', '--', 'echo', 'ran'],
                  ['run', '--wait', '2s', 'backup\x1b[2J', '--', 'echo', 'ran'], ['acquire', '--wait', '200ms', 'backup\x1b[2J']):
        result = ended(quorum.run(*words), HELD)
        contains(result.stderr, "redlock: 'backup\\x1b[2J': contended: ", 'of 3 masters hold it for another owner',
                 ' ms, 2 of 3 votes needed')
        equal(result.stdout, '')
    quorum.everywhere('kill', first=2)
    for words in (['run', '--wait', 'none', 'other', '--', 'echo', 'ran'], ['run', '--wait', '1s', 'other', '--', 'echo', 'ran'],
                  ['run', '--skip-if-held', 'other', '--', 'echo', 'ran'], ['acquire', '--wait', 'none', 'other']):
        result = ended(quorum.run(*words), NO_QUORUM)
        contains(result.stderr, "'other': no quorum: ", ' of 3 masters ', 'Connection refused', 'run redlock doctor for details',
                 *(master.name for master in quorum.masters))
        equal(result.stdout, '')


@case('what a master is: a log-in, no memory, nobody there', 2)
def _(quorum):
    first, second = quorum.masters
    second.ask('CONFIG', 'SET', 'maxmemory', '1')
    second.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')

    def one(url, *said):
        words = ['run', '--wait', 'none', '--connect-timeout', '300ms', 'a', '--', 'true']
        line = refused(quorum, words, NO_QUORUM, *said, env=listed(url))
        assert SECRET not in line, line

    one(first.url.replace('//', f'//:{SECRET}@'), 'without any password configured')
    one(first.url.replace('//', f'//joe:{SECRET}@'), 'WRONGPASS')
    one(first.url + '/99', first.name + '/99 error (ERR DB index is out of range)')
    full = quorum.run('run', '--wait', 'none', 'a', '--', 'true', env=listed(second))
    contains(ended(full, NO_QUORUM).stderr, 'OOM', 'maxmemory is reached')
    one('redis://127.0.0.1:1', '127.0.0.1:1 unreachable (connect: Connection refused)')
    one('redis://no-such-host.invalid', 'look-up of the name')
    first.ask('CONFIG', 'SET', 'requirepass', SECRET)
    one(first.url, 'NOAUTH', 'run redlock doctor')


@case(
    'a server without TLS is named, also after a wait that is shorter than connect_timeout',
    2, options=['--requirepass', SECRET])
def _(quorum):
    urls = [master.url.replace('redis://', f'rediss://:{SECRET}@') for master in quorum.masters]
    masters = listed(*urls)
    names = ', '.join(master.name for master in quorum.masters)
    for words in (['run', '--wait', '300ms', 'a', '--', 'true'], ['acquire', '--wait', '300ms', 'a'],
                  ['run', '--wait', 'none', '--connect-timeout', '300ms', 'a', '--', 'true'],
                  ['status', '--connect-timeout', '300ms', 'a']):
        result = ended(quorum.run(*words, env=masters), NO_QUORUM)
        contains(result.stderr, f'redlock: {names} replied without TLS: enable TLS there (tls-port), or write '
                                'redis:// in place of rediss://\n')
        assert SECRET not in result.stderr, result.stderr
    # One that hangs has not replied.
    quorum.everywhere('signal', signal.SIGSTOP)
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
            (['acquire', '--wait', 'none', '--fencing', 'b'], NO_QUORUM, 'DEL redlock:{b}:fence\n'),
            (['run', '--wait', 'none', 'a', '--', 'true'], HELD, 'DEL redlock:{a}\n'),
            (['acquire', '--wait', '3s', 'a'], HELD, 'another program has a key of this name')):
        contains(ended(quorum.run(*words), status).stderr, said)
    # The advice helps.
    quorum.everywhere('ask', 'DEL', 'redlock:{a}', 'redlock:{b}:fence')
    ended(quorum.run('run', '--wait', 'none', '--fencing', 'b', '--', 'true'), 0)
    equal(ended(quorum.run('status', 'a'), 0).stderr, '')


@case('no password is shown, wherever it was put', 1, options=['--requirepass', SECRET])
def _(quorum):
    master = quorum.masters[0]
    url = f'redis://joe:{SECRET}@h'
    run = ['--', 'true']
    for words in (
            ['--masters', url, url, 'run', 'a', *run], ['--masters', f'redis://x,{url}:y', 'run', 'a', *run],
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


@case('standard output that takes nothing is an error, and a token that was not heard is given back')
def _(quorum):
    with open('/dev/full', 'w', encoding='utf-8') as full:
        for words in (['status', 'a'], ['list', '--json'], ['doctor', '--clock-time', '10ms'], ['--help'],
                      ['acquire', 'a'], ['metrics'], ['watch', 'a']):
            process = quorum.start(*words, stdout=full)
            _, err = process.communicate()
            equal(process.returncode, INTERNAL, words)
            contains(err, 'cannot write to standard output: No space left on device')
    reader, writer = os.pipe()
    os.close(reader)
    process = quorum.start('acquire', 'a', stdout=writer, restore_signals=True)
    os.close(writer)
    equal(process.wait(), INTERNAL)
    contains(process.stderr.read(), 'cannot write to standard output')
    limited = ['-c', 'ulimit -f 0; exec "$@" > "$0"', quorum.path('out'), harness.TOOL, 'acquire', 'a']
    contains(ended(quorum.run(*limited, tool='sh'), INTERNAL).stderr, 'File too large')
    equal(quorum.keys(), [])


@case('what is not meant is warned of: settings of TLS without a master that uses it, a variable that is nearly one')
def _(quorum):
    result = quorum.run('--tls-ca-file', '/ca', 'run', 'a', '--', 'true', env={'REDLOCK_MAX_TTTL': '5s', 'REDLOCK_XYZ': '1'})
    equal(ended(result, 0).stderr,
          'redlock: the variable REDLOCK_MAX_TTTL is not known, did you mean REDLOCK_MAX_TTL?\n'
          'redlock: tls is configured, but no master is rediss://: nothing is encrypted\n')


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
    contains(refused(quorum, ['local'], NOT_FOUND, env={'PATH': str(quorum.directory)}), 'redis-server nor valkey-server')
    contains(refused(quorum, ['local', '1'], INTERNAL, env={'TMPDIR': '/no/such'}), "'/no/such', as TMPDIR says: No such file")
    refused(quorum, ['local', '1'], NOT_FOUND, env={'REDLOCK_REDIS_SERVER': '/no/such'},
            exactly="REDLOCK_REDIS_SERVER is '/no/such', which cannot be run: No such file or directory")
    contains(refused(quorum, ['local', '1'], INTERNAL, env={'REDLOCK_REDIS_SERVER': '/bin/false'}),
             "'/bin/false' does not start", '/bin/false --port ')


if __name__ == '__main__':
    main()
