#!/usr/bin/env python3
"""The file of --config: no message repeats a value of it, which may be a password in a wrong line: file_test.py REDLOCK [CASE...]"""

import re

from harness import CONFIGURATION, case, contains, ended, main

SECRETS = ('s3cr3t', '8675309', '5s3cr3t', 's3cr3t x', 's3cr3t@h:1', 's3cr3t:80', '{secret}', "s3'cr3t")
COMMANDS = {
    'run': ['run', '--wait', 'none', 'a', '--', 'true'], 'acquire': ['acquire', '--wait', 'none', 'a'],
    'pool': ['pool', '--wait', 'none', 'a', '--', 'true'], 'attach': ['attach', 'a', '--', 'true'], 'doctor': ['doctor'],
    'members': ['members'], 'size': ['size'], 'metrics': ['metrics']}
URLS = (
    '{}', 'redis://h:1/{}', 'redis://h:{}', 'redis://h:1/0?name={}', 'redis://h:1/0?{}=1', 'redis://h:1/0/{}', 'redis://h:1?{}', 'redis://h:1#{}',
    'redis://h:1,{}', 'redis://h {}:1', 'redis://[{}]:1', 'redis://{}:x:1', 'redis://h:1/0?password={}', 'redis://u:{}@h:1/0?bad=1',
    'unix://{}', 'unix:///x?db={}', '{}://h:1')


def options_of(quorum, *command):
    text = ended(quorum.run(*command, '--help'), 0).stdout
    return sorted(set(re.findall(r'--([a-z-]+)', text)) - {'help', 'version', 'config', 'password', 'masters', 'quorum'})


@case('no message repeats a value of the file', 0)
def _(quorum):
    refused = 0

    def check(words, text, secret):
        nonlocal refused
        quorum.path('file').write_text(text)
        result = quorum.run('--config', quorum.path('file'), *words, env={'REDLOCK_MASTERS': ''})
        if result.returncode == CONFIGURATION:
            refused += 1
            for part in re.split("[ :@']", secret):
                assert len(part) < 3 or part not in result.stderr, (words, text, result.stderr)
    masters = 'masters = ["redis://127.0.0.1:1"]\n'
    general = options_of(quorum)
    for secret in SECRETS:
        for option in general:
            check(COMMANDS['run'], f'{masters}{option} = "{secret}"\n', secret)
        for command, words in COMMANDS.items():
            for option in set(options_of(quorum, command)) - set(general) - {'wait'} if secret == SECRETS[0] else ():
                check(words, f'{masters}[{command}]\n{option} = "{secret}"\n', secret)
        for url in URLS if "'" not in secret else ():
            if url != '{}' or '{' not in secret:
                check(COMMANDS['run'], f'masters = ["redis://a", "{url.replace("{}", secret)}"]\n', secret)
    assert refused > 200, refused
    quorum.path('file').write_text('masters = ["redis://a", "redis://h:1/s3cr3t"]\n')
    result = quorum.run('--config', quorum.path('file'), 'status', 'a', env={'REDLOCK_MASTERS': ''})
    contains(ended(result, CONFIGURATION).stderr, "entry 2 of --masters: master '...': database '...' is not a number")


if __name__ == '__main__':
    main()
