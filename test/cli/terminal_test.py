#!/usr/bin/env python3
"""`redlock run` in the company of a shell, a terminal and a pipeline, next to flock: terminal_test.py REDLOCK [CASE...]"""

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import time

import harness
from harness import case, children_of, contains, ended, equal, main, until
from terminals import SHELLS, Shell, Terminal


def locks(quorum):
    """The tool, and flock as a control: the words before a command."""
    flock = shutil.which('flock')
    assert flock, 'flock is of util-linux'
    return [shlex.join([flock, str(quorum.path('lock'))]), shlex.join([harness.TOOL, 'run', 'a', '--'])]


def free(quorum):
    """The lock is released."""
    until(lambda: not quorum.keys(), 'the release')


BEGUN = 'sh -c "echo begun; exec sleep 600"'


def scripted(quorum, name, text):
    """An interactive shell in which this script runs."""
    quorum.path('script').write_text(text)
    return at_prompt(quorum, f'{name} ./script', name)


def after_key(quorum, name, lock, form, key):
    """The status of a script of this form, whose command was ended by the key, and what it wrote after that."""
    shell = scripted(quorum, name, form.format(lock=lock, begun=BEGUN))
    shell.reads('begun')
    shell.type(key)
    out = shell.synchronize()
    free(quorum)
    return out


@case('Ctrl-C ends the command and the script, the loop, the find or the xargs around it, as with flock')
def _(quorum):
    for number in range(3):
        quorum.path(f'file{number}').touch()
    for form in ('{lock} {begun}', 'for i in 1 2 3; do {lock} {begun}; done', "find . -name 'file*' -exec {lock} {begun} \\;",
                 'ls file* | xargs -n 1 {lock} {begun} --'):
        for name, lock in itertools.product(SHELLS, locks(quorum)):
            status, out = after_key(quorum, name, lock, form + '\necho next\n', '\x03')
            assert 'next' not in out and 'begun' not in out, (name, lock, form, out)
            equal(status, 130, f'{name} {lock} {form}')


@case('Ctrl-\\ ends the command and what is around it, as with flock')
def _(quorum):
    for name in SHELLS:
        flock, tool = (after_key(quorum, name, lock, '{lock} {begun}\necho next $?\n', '\x1c') for lock in locks(quorum))
        equal((tool[0], 'next 131' in tool[1]), (flock[0], 'next 131' in flock[1]), name)


@case('the trap of a script runs after Ctrl-C that its command handled, as without a lock')
def _(quorum):
    handles = "sh -c 'trap \"exit 3\" INT; echo begun; while :; do sleep 0.02; done'"
    for name in SHELLS:
        form = 'trap "echo trap" INT\n{lock} ' + handles + '\necho status $?\nexit 0\n'
        _, out = after_key(quorum, name, locks(quorum)[1], form, '\x03')
        contains(out, 'trap', 'status 3')


@case('Ctrl-C ends the loop of an interactive shell around the command, and what is after it in a pipeline')
def _(quorum):
    for name, lock in itertools.product(SHELLS, locks(quorum)):
        for line in (f'for i in 1 2 3; do {lock} {BEGUN}; done', f'{lock} {BEGUN} | cat'):
            if name == 'dash' and line.startswith('for'):
                continue  # it goes on with its loop, with whatever command
            shell = at_prompt(quorum, line, name)
            shell.reads('begun')
            shell.type('\x03')
            status, out = shell.synchronize()
            assert 'begun' not in out, (lock, out)
            equal(status, 130, lock)
            free(quorum)


@case('Ctrl-C ends the wait for a lock and the script around it')
def _(quorum):
    holder = quorum.holder('a')
    for name in SHELLS:
        shell = scripted(quorum, name, f'{locks(quorum)[1]} true\necho next\n')
        quorum.has_waiter()
        shell.type('\x03')
        status, out = shell.synchronize()
        assert 'next' not in out, out
        equal(status, 130, name)
    assert holder.poll() is None
    equal(quorum.keys(), ['redlock:{a}'])


@case('Ctrl-C in the time of --at-least ends the script as well')
def _(quorum):
    shell = scripted(quorum, 'bash', f"sh -c 'echo $$ > tool; exec {harness.TOOL} run --at-least 10m a -- true'\necho next\n")
    until(quorum.keys, 'the lock')
    tool = int(quorum.path('tool').read_text())
    until(lambda: not children_of(tool), 'the end of the command')
    shell.type('\x03')
    status, out = shell.synchronize()
    assert 'next' not in out, out
    equal(status, 130)


def at_prompt(quorum, line, name='bash'):
    """An interactive shell in which this line runs."""
    shell = Shell(quorum, name)
    shell.line(line)
    return shell


def answered(shell):
    """Types an answer for the command, and returns the status of its job."""
    shell.line('words')
    shell.reads('got words')
    return shell.synchronize()[0]


SHORT_S = 2  # a lease that is not renewed is soon over
READS = """sh -c 'read x < /dev/tty; echo "got $x"; exit 4'"""


@case('a command whose standard input or output is a file or a pipe asks on the terminal, as under flock')
def _(quorum):
    quorum.path('file').write_text('data\n')
    for name, lock in itertools.product(SHELLS, locks(quorum)):
        for line in (f'{lock} {READS} < file', f'echo data | {lock} {READS}', f'{name} ./script < file',
                     f'stty tostop; echo data | {lock} {READS}; (exit $?)', f'{lock} {READS} | cat; (exit 4)',
                     f'x=$({lock} {READS}); echo $x; (exit 4)'):
            quorum.path('script').write_text(f'{lock} {READS}\n')
            shell = at_prompt(quorum, line, name)
            equal(answered(shell), 4, line)
            free(quorum)


@case('a command under two locks asks on the terminal, also in a pipeline, and Ctrl-C ends both')
def _(quorum):
    outer, inner = locks(quorum)[1], f'{harness.TOOL} run b --'
    quorum.path('script').write_text(f'{inner} {READS}\n')
    for line in (f'{outer} {inner} {READS}', f'echo data | {outer} {inner} {READS} | cat', f'echo data | {outer} sh ./script | cat'):
        shell = at_prompt(quorum, line)
        equal(answered(shell), 0 if 'cat' in line else 4, line)
        free(quorum)
    shell = at_prompt(quorum, f'{outer} {inner} {BEGUN}')
    shell.reads('begun')
    shell.type('\x03')
    equal(shell.synchronize()[0], 130)
    free(quorum)


@case('a script that runs the command in its background keeps the terminal')
def _(quorum):
    for name, lock in itertools.product(SHELLS, locks(quorum)):
        quorum.path('go').unlink(missing_ok=True)
        shell = scripted(
            quorum, name, f'{lock} sh -c "echo begun; until [ -e go ]; do sleep 0.05; done" &\nread x; echo "got $x"; touch go; wait\n')
        shell.reads('begun')
        answered(shell)
        free(quorum)


@case('a pager after the command has the terminal, and the command is not stopped with it')
def _(quorum):
    for name, lock in itertools.product(SHELLS, locks(quorum)):
        lock = lock.replace(' run ', f' run --ttl {SHORT_S}s ')
        for pager in ['less'] * bool(shutil.which('less')) + ['(while read line; do read x < /dev/tty; echo "$line$x"; done)']:
            go, done = quorum.path('go'), quorum.path('done')
            for path in (go, done):
                path.unlink(missing_ok=True)
            job = 'seq 100; until [ -e go ]; do sleep 0.05; done; echo yes > done'
            shell = at_prompt(quorum, f"{lock} sh -c '{job}' | {pager}", name)
            key = ' ' if pager == 'less' else 'x\n' * 30
            until(lambda shell=shell, key=key: shell.shows('60', key), 'the next page')
            time.sleep(1.5 * SHORT_S if 'run' in lock else 0)  # it would have been killed
            go.touch()
            until(done.exists, 'the end of the command')
            shell.type('q' if pager == 'less' else '\n' * 100)
            free(quorum)


# Without a child: a shell does not stop during a vfork.
STEPS = """sh -c 'echo begun; read line < go; read x < /dev/tty; echo "got $x"; exit 4'"""


@case('fg gives the terminal to a command that Ctrl-Z stopped with the job of the shell, or that began in the background')
def _(quorum):
    go = quorum.path('go')
    os.mkfifo(go)
    for name, lock in itertools.product(SHELLS, locks(quorum)):
        for rest in (' &', '', ' < /dev/null', ' | cat', ' 2>&1 | cat'):
            shell = at_prompt(quorum, f'{lock} {STEPS}{rest}', name)
            shell.reads('begun')
            if rest != ' &':
                shell.type('\x1a')
                shell.line('echo "at the prompt"')
                shell.reads('at the prompt')
            shell.line('fg')
            until(lambda shell=shell: os.tcgetpgrp(shell.terminal) != shell.pid, 'the fg')
            go.write_text('go on\n')
            equal(answered(shell), 0 if 'cat' in rest else 4, (lock, rest))
            free(quorum)


@case('a command that needs the terminal in the background says so, keeps its lock, and gets it with fg')
def _(quorum):
    for name in SHELLS:
        shell = at_prompt(quorum, f'{locks(quorum)[1].replace(" run ", f" run --ttl {SHORT_S}s ")} {READS} &', name)
        shell.reads('needs the terminal')
        time.sleep(1.5 * SHORT_S)
        equal(quorum.keys(), ['redlock:{a}'])
        shell.line('fg')
        equal(answered(shell), 4)
        free(quorum)


@case('a command that continues in the background leaves the terminal to the shell')
def _(quorum):
    go = quorum.path('go')
    os.mkfifo(go)
    for name in SHELLS:
        shell = at_prompt(quorum, f'{locks(quorum)[1]} sh -c "echo begun; read line < go; exit 4"', name)
        shell.reads('begun')
        shell.type('\x1a')
        shell.line('echo "at the prompt"')
        shell.reads('at the prompt')
        shell.line('bg; wait %1; echo "waited $?"')
        go.write_text('go on\n')
        shell.reads('waited 4')
        equal(os.tcgetpgrp(shell.terminal), shell.pid)


@case('a command in the foreground that stops itself stops the job')
def _(quorum):
    script = "sh -c 'echo begun; kill -STOP $$; echo on; exit 4'"
    for name in SHELLS:
        shell = at_prompt(quorum, f'{locks(quorum)[1]} {script}', name)
        shell.reads('was stopped by signal 19')
        shell.line('echo "at the prompt"')
        shell.reads('at the prompt')
        shell.line('fg')
        shell.reads('on')
        equal(shell.synchronize()[0], 4)


@case('a stop of the tool or of its command alone does not stop the script around them, as with flock')
def _(quorum):
    script = ('{lock} sh -c "echo begun; exec sleep 600" & tool=$!; read line; kill -TSTP $tool\n'
              'until grep -q "^State:.T" /proc/$tool/status; do sleep 0.02; done; kill -CONT $tool; kill $tool; wait $tool; echo ended $?\n')
    for lock in locks(quorum):
        process = quorum.start('-c', script.format(lock=lock), tool='sh', stdin=subprocess.PIPE, process_group=0)
        equal(process.stdout.readline(), 'begun\n')
        print('', file=process.stdin, flush=True)
        equal(process.stdout.readline(), 'ended 143\n')
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    until(lambda: not quorum.keys(), 'the release')
    script = f'{locks(quorum)[1]} sh -c "echo \\$\\$; kill -TSTP \\$\\$; exit 4"; echo ended $?'
    process = quorum.start('-c', script, tool='sh', process_group=0)
    command = int(process.stdout.readline())
    contains(process.stderr.readline(), 'was stopped by signal 20')
    os.kill(command, signal.SIGCONT)
    equal(process.stdout.readline(), 'ended 4\n')


@case('Ctrl-Z has no effect where no shell could continue the tool, and does not keep it from its end')
def _(quorum):
    lock = locks(quorum)[1]
    os.mkfifo(quorum.path('go'))
    forms = [shlex.split(f'{lock} {STEPS}'), ['sh', '-c', f'{lock} {STEPS}; exit $?']]
    forms += [['script', '-qc', f'{lock} {STEPS}', '/dev/null']] * bool(shutil.which('script'))
    for words in forms:
        tool = Terminal(quorum, *words)
        tool.reads('begun')
        for _ in range(3):
            tool.type('\x1a')
            time.sleep(0.1)  # so that the key could stop something
        quorum.path('go').write_text('go on\n')
        tool.type('words\n')
        tool.reads('got words')
        free(quorum)
    tool = Terminal(quorum, *shlex.split(f'{lock} {BEGUN}'))
    tool.reads('begun')
    tool.type('\x1a')
    time.sleep(0.3)  # as above
    os.kill(tool.pid, signal.SIGTERM)
    free(quorum)


@case('bash completes names of files with spaces')
def _(quorum):
    quorum.path('my file.toml').touch()
    quorum.path('completion').write_text(ended(quorum.run('completion', 'bash'), 0).stdout)
    shell = Terminal(quorum, 'bash', '--norc', '--noprofile', '-i')
    shell.type('source ./completion; redlock() { printf "<%s>" "$@"; }\n')
    for words, seen in (('--config', '<--config>'), ('run a -- cat', '<run><a><--><cat>')):
        shell.type(f'redlock {words} my\t\n')
        shell.reads(seen + '<my file.toml>')


if __name__ == '__main__':
    main()
