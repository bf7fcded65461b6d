#!/usr/bin/env python3
"""Where options come from, and what is never shown: options_test.py REDLOCK [CASE...]"""

import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse

from harness import CONFIGURATION, HELD, NO_QUORUM, USAGE, Skip, case, contains, ended, equal, main

SECRET = 'sesame#open "1"'


def ttl_of(quorum, *words, env=None):
    """The ttl that a lock really has, rounded to seconds."""
    script = f'redis-cli -p {quorum.masters[0].port} PTTL redlock:{{a}}'
    result = ended(quorum.run('run', *words, 'a', '--', 'sh', '-c', script, env=env), 0)
    return round(int(result.stdout) / 1000)


@case('command line before environment before file before default', 1)
def _(quorum):
    file = quorum.path('redlock.toml')
    file.write_text('ttl = "22s"\n')
    file_env = {'REDLOCK_CONFIG': str(file)}
    equal(ttl_of(quorum), 10)
    equal(ttl_of(quorum, env=file_env), 22)
    equal(ttl_of(quorum, '--config', file), 22)
    equal(ttl_of(quorum, env=file_env | {'REDLOCK_TTL': '24s'}), 24)
    equal(ttl_of(quorum, '--ttl', '26s', env=file_env | {'REDLOCK_TTL': '24s'}), 26)
    file.write_text('ttl = "22s"\n[run]\nttl = "28s"\n')
    equal(ttl_of(quorum, env=file_env), 28)


@case('a file gives everything: arrays, numbers, flags, comments, quotes', 1)
def _(quorum):
    file = quorum.path('redlock.toml')
    urls = ',\n  '.join(f'"{master.url}"' for master in quorum.masters)
    file.write_text(
        f'# the quorum\nmasters = [\n  {urls}, # and no more\n]\nno-quarantine = true\n'
        'clock-drift-factor = 0.02\nprefix = \'my:\'\n\n[run] # only there\nwait = "none"\n')
    quorum.env = {name: value for name, value in quorum.env.items() if not name.startswith('REDLOCK')}
    script = f'redis-cli -p {quorum.masters[0].port} EXISTS my:{{a}}'
    equal(ended(quorum.run('--config', file, 'run', 'a', '--', 'sh', '-c', script), 0).stdout, '1\n')


@case('masters between commas, or one an option')
def _(quorum):
    urls = [master.url for master in quorum.masters]
    del quorum.env['REDLOCK_MASTERS']
    for words in (['--masters', ' , '.join(urls), 'run'], ['run', *(word for url in urls for word in ('--masters', url))]):
        ended(quorum.run(*words, 'a', '--', 'true'), 0)


@case('options that exclude each other, also if one of them is a variable or in the file', 1)
def _(quorum):
    file = quorum.path('redlock.toml')
    run = ['a', '--', 'true']
    for text, env, words, said in (
            ('', {'REDLOCK_SHARED': 'true'}, ['--fencing'], '--fencing cannot be combined with REDLOCK_SHARED'),
            ('shared = true\nexclusive = true\n', {}, [],
             f'{file}: line 1: shared cannot be combined with {file}: line 2: exclusive'),
            ('', {'REDLOCK_FIFO': 'true'}, ['--slots', '2'], 'REDLOCK_FIFO cannot be combined with --slots')):
        file.write_text(text)
        result = quorum.run('run', '--config', file, *words, *run, env=env)
        contains(ended(result, CONFIGURATION).stderr, f'redlock: {said}; see redlock run --help')
    file.write_text('[run]\nshared = true\n')
    for env in ({}, {'REDLOCK_SHARED': 'true'}):
        script = f'redis-cli -p {quorum.masters[0].port} EXISTS redlock:{{a}}:readers'
        for words, readers in (['--exclusive'], '0\n'), ([], '1\n'):
            result = quorum.run('run', '--config', file, *words, 'a', '--', 'sh', '-c', script, env=env)
            equal(ended(result, 0).stdout, readers)
    file.write_text('shared = false\n')
    for value in ('true', '1', 'false', '0'):
        ended(quorum.run('run', '--config', file, *run, env={'REDLOCK_FIFO': value}), 0)
    ended(quorum.run('run', '--config', file, '--exclusive', *run, env={'REDLOCK_FIFO': 'false'}), 0)
    ended(quorum.run('status', '--config', file, 'a', env={'REDLOCK_FIFO': 'true', 'REDLOCK_SLOTS': '2'}), 0)


@case('a wrong file: its own status, its line, and what was meant', 0)
def _(quorum):
    file = quorum.path('redlock.toml')
    for text, said in (
            ('max-tl = "1s"\n', 'did you mean max-ttl?'),
            ('\nttl = 10s\n', 'line 2: ttl: not valid TOML (expected digit); put text and durations in quotes'),
            ('ttl = "10sec"\n', "ttl: '...' has an unknown unit. Units are"),
            ('[rnu]\nttl = "10s"\n', 'did you mean run?'),
            ('[frob]\nttl = "10s"\n', 'line 2: ttl: unknown command [frob]; redlock --help lists the commands'),
            ('frob = 1\n', 'line 1: frob: unknown option; see redlock --help and redlock COMMAND --help'),
            ('[status]\nwait = "1s"\n', 'line 2: wait: unknown option; see redlock --help and redlock status --help'),
            ('ttl = ["1s", "2s"]\n', 'line 1: ttl: more than one value'),
            ('masters = []\n', 'line 1: masters: the list is empty; write one or more values, or remove the line'),
            ('ttl = []\n', 'line 1: ttl: the list is empty; write a value, or remove the line'),
            ('ttl = "1s"\nttl = "2s"\n', 'line 2: ttl: not valid TOML (cannot redefine'),
            ('ttl = 2026-01-01\n', 'line 1: ttl: allowed: text in quotes, a number, true, false, or an array'),
            ('masters = ' + '[' * 100_000 + '\n', 'line 1: masters: not valid TOML (exceeded maximum nested'),
            ('protocol = "gaurded"\n', 'protocol')):
        file.write_text(text)
        result = quorum.run('--config', file, 'run', 'a', '--', 'true')
        contains(ended(result, CONFIGURATION).stderr, said, str(file))
    ended(quorum.run('--config', quorum.path('none'), 'run', 'a', '--', 'true'), CONFIGURATION)


@case('passwords by variable, file, configuration and URL, of any characters; none is ever printed', options=['--requirepass', SECRET])
def _(quorum):
    secret_file = quorum.path('password')
    secret_file.write_text(SECRET + '\n')
    toml = quorum.path('redlock.toml')
    toml.write_text(f"password = '{SECRET}'\n")
    part = SECRET.split('#', maxsplit=1)[0]
    urls = quorum.env['REDLOCK_MASTERS']
    for way in ({'REDLOCK_PASSWORD': SECRET}, {'REDLOCK_PASSWORD_FILE': str(secret_file)}, {'REDLOCK_CONFIG': str(toml)},
                {'REDLOCK_MASTERS': urls.replace('//', f'//:{urllib.parse.quote(SECRET)}@')}):
        process, _ = quorum.under('echo ready; read line; exit 3', '--verbose', stdin=-1, env=way)
        assert part not in pathlib.Path(f'/proc/{process.pid}/cmdline').read_text()
        _, err = process.communicate('\n')
        equal(process.returncode, 3)
        assert part not in err
    # What is wrong with it is said without it.
    broken = urls.replace('redis://', f'redis://:{part}@') + ':x'
    result = ended(quorum.run('run', 'a', '--', 'true', env={'REDLOCK_MASTERS': broken}), CONFIGURATION)
    assert part not in result.stderr, result.stderr
    result = quorum.run('run', '--wait', 'none', 'a', '--', 'true', env={'REDLOCK_PASSWORD': 'wrong-one'})
    assert 'wrong-one' not in ended(result, NO_QUORUM).stderr, result


def options_of(quorum, *command):
    text = ended(quorum.run(*command, '--help'), 0).stdout
    return set(re.findall(r'--([a-z-]+)', text)) - {'help', 'version', 'config', 'password', 'masters', 'quorum'}


@case('no message repeats a value of the file, which may be a password in a wrong line', 0)
def _(quorum):
    file = quorum.path('file')
    masters = 'masters = ["redis://127.0.0.1:1"]\n'
    refused = 0

    def check(words, text, secret):
        nonlocal refused
        file.write_text(text)
        result = quorum.run('--config', file, *words)
        if result.returncode == CONFIGURATION:
            refused += 1
            for part in re.split("[ :@']", secret):
                assert len(part) < 3 or part not in result.stderr, (words, text, result.stderr)
    run = ['run', '--wait', 'none', 'a', '--', 'true']
    for secret in ('s3cr3t', '8675309', '5s3cr3t', 's3cr3t x', 's3cr3t@h:1', 's3cr3t:80', '{secret}', "s3'cr3t"):
        for option in options_of(quorum):
            check(run, f'{masters}{option} = "{secret}"\n', secret)
        for url in (
                'redis://h:1/SECRET', 'redis://h:SECRET', 'redis://h:1/0?name=SECRET', 'redis://h:1/0?SECRET=1', 'redis://h:1,SECRET',
                'redis://h SECRET:1', 'redis://[SECRET]:1', 'redis://u:SECRET@h:1/0?bad=1', 'unix:///x?db=SECRET', 'SECRET://h:1'):
            check(run, f'masters = ["redis://a", "{url.replace("SECRET", secret)}"]\n', secret)
    for words in (run, ['acquire', '--wait', 'none', 'a'], ['pool', '--wait', 'none', 'a', '--', 'true'], ['attach', 'a', '--', 'true'],
                  ['doctor'], ['members'], ['size'], ['metrics']):
        for option in options_of(quorum, words[0]) - options_of(quorum) - {'wait'}:
            check(words, f'{masters}[{words[0]}]\n{option} = "s3cr3t"\n', 's3cr3t')
    assert refused > 200, refused
    file.write_text('masters = ["redis://a", "redis://h:1/s3cr3t"]\n')
    result = quorum.run('--config', file, 'status', 'a')
    contains(ended(result, CONFIGURATION).stderr, "entry 2 of --masters: master '...': database '...' is not a number")


def commands_of(quorum):
    text = ended(quorum.run('--help'), 0).stdout
    return re.findall(r'^  ([a-z-]+)', text.partition('Commands:')[2].partition('\n\n')[0], re.M)


def bash_offers(script, *words):
    """What bash would offer for the last of the words."""
    driver = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _redlock;'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(['bash', '-c', driver, 'bash', script, *words], text=True, capture_output=True, check=True)
    return done.stdout.split()


for _shell in ('bash', 'zsh', 'fish'):
    @case(f'{_shell} reads its completion', 0)
    def _(quorum, shell=_shell):
        script = quorum.path(shell)
        script.write_text(ended(quorum.run('completion', shell), 0).stdout)
        if not shutil.which(shell):
            raise Skip(f'{shell} is not installed')
        subprocess.run([shell, '-n', script], check=True)


@case('completions, as bash offers them', 0)
def _(quorum):
    script = quorum.path('bash')
    script.write_text(ended(quorum.run('completion', 'bash'), 0).stdout)
    equal(set(bash_offers(script, 'redlock', '')), set(commands_of(quorum)))
    equal(bash_offers(script, 'redlock', 'run', '--gr'), ['--grace'])
    equal(bash_offers(script, 'redlock', '--masters', 'run', 'status', '--inter'), [])
    equal(bash_offers(script, 'redlock', '--ttl', 'x', 'watch', '--inter'), ['--interval'])
    equal(bash_offers(script, 'redlock', 'run', '--wait', ''), ['none', 'forever'])
    equal(bash_offers(script, 'redlock', '--protocol', 'p'), ['plain'])
    equal(bash_offers(script, 'redlock', 'local', '--faults', 'k'), ['keys'])
    equal(bash_offers(script, 'redlock', 'completion', 'z'), ['zsh'])
    equal(bash_offers(script, 'redlock', 'man', 'doc'), ['doctor'])
    equal(bash_offers(script, 'redlock', 'run', '--ttl', ''), [])
    zsh = ended(quorum.run('completion', 'zsh'), 0).stdout
    contains(zsh, ':none|DURATION|forever:(none forever)', "'1:what:(bash zsh fish)'")
    fish = ended(quorum.run('completion', 'fish'), 0).stdout
    contains(fish, "-l wait -x -a 'none forever' -d ", "seen_subcommand_from completion' -a 'bash zsh fish'")
    assert 'sort' in bash_offers(script, 'redlock', 'run', 'a', '--', 'sor')


@case('a manual page for each command', 0)
def _(quorum):
    for command in ['', *commands_of(quorum)]:
        page = ended(quorum.run('man', *command.split()), 0).stdout
        contains(page, '.TH redlock', '.SH NAME', '.SH SYNOPSIS', '.SH DESCRIPTION', '.SH ENVIRONMENT',
                 'REDLOCK_CONFIG', '.SH EXIT STATUS', '.B 203')
        equal('.B 208' in page, command in ('', 'doctor'), command)
        equal('REDLOCK_DEADLINE' in page, command in ('', 'run', 'attach', 'pool', 'elect'), command)
        if shutil.which('groff'):
            done = subprocess.run(['groff', '-man', '-ww', '-Tascii'], input=page, text=True, capture_output=True)
            equal(done.stderr, '')


@case('help for each command, with examples; and the version', 0)
def _(quorum):
    contains(ended(quorum.run('--help'), 0).stdout, 'REDLOCK_MAX_TTL', '--masters')
    commands = commands_of(quorum)
    assert 'run' in commands
    for command in commands:
        text = ended(quorum.run(command, '--help'), 0).stdout
        contains(text, 'Usage: redlock ' + command, 'Examples:')
        assert not re.search(r'REQUIRED|Excludes|Needs|\.\.\. \.\.\.|=[0-9]+[a-z]* ', text.partition('Examples:')[0]), text
        equal(ended(quorum.run('help', command), 0).stdout, text)
    equal({ended(quorum.run(*words), 0).stdout for words in (['help'], ['help', 'help'])}, {ended(quorum.run('-h'), 0).stdout})
    contains(ended(quorum.run('help', 'rnu'), USAGE).stderr, 'did you mean run?')
    assert ended(quorum.run('--version'), 0).stdout.count('.') == 2


@case('size reckons without masters, from the options of the quorum', 0)
def _(quorum):
    del quorum.env['REDLOCK_MASTERS']
    result = quorum.run('size', '--json', '--availability', '99', '--count', '3,5', '--grace', '1s')
    report = json.loads(ended(result, 0).stdout)
    equal([(one['masters'], one['votes_needed'], one['may_be_down']) for one in report['quorums']],
          [(3, 2, 1), (5, 3, 2)])
    equal((report['lease']['held_ms'], report['lease']['quarantine_ms']), (8898, 32602))
    result = quorum.run('size', '--ttl', '20s', '--max-ttl', '10s')
    contains(ended(result, CONFIGURATION).stderr, 'ttl')
    ended(quorum.run('size', '--count', '0'), USAGE)


@case('-- ends the options of each command: a name may begin with -')
def _(quorum):
    for words in (['run'], ['pool', '--size', '2'], ['elect']):
        for name in ('-x', '--json', '--', '-'):
            result = quorum.run(*words, '--', name, '--', 'sh', '-c', 'echo "$REDLOCK_RESOURCE" "$@"; exit 4', 'sh', '--', '-y')
            equal(ended(result, 4).stdout, f'{name} -- -y\n')
    token = ended(quorum.run('acquire', '--', '-x'), 0).stdout.strip()
    listed = ended(quorum.run('--prefix', 'redlock:', 'list', '--json'), 0).stdout
    contains(listed, '"-x"')
    contains(ended(quorum.run('status', 'a', '--', '-x', '--json'), HELD).stdout, 'a: free', '-x: held', '--json: free')
    quorum.env['REDLOCK_TOKEN'] = token
    ended(quorum.run('extend', '--', '-x'), 0)
    ended(quorum.run('attach', '--keep', '--', '-x', '--', 'true'), 0)
    ended(quorum.run('release', '--', '-x'), 0)
    ended(quorum.run('status', '--', '-x'), 0)
    for words, missing in ((['run', '--', '-x', 'true'], 'RESOURCE is missing'), (['run', '--', 'a', 'b', '--', 'c'], 'RESOURCE is missing'),
                           (['release', '--', 'a', '-x'], 'release takes nothing after --'), (['run', '--', '-x', '--'], 'no command given')):
        contains(ended(quorum.run(*words), USAGE).stderr, missing)
    equal(ended(quorum.run('run', 'a', '--', 'echo', '-x', '--', '-y'), 0).stdout, '-x -- -y\n')


if __name__ == '__main__':
    main()
