"""What the tests of the command line have in common: real masters, the real program, TAP.

A file of tests declares cases and ends with main(): each is counted by scripts/summarize. Another
server than the redis-server in the path: REDLOCK_REDIS_SERVER.
"""

import contextlib
import ctypes
import inspect
import itertools
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from standstill import Witness  # pylint: disable=wrong-import-position

LIMIT_S = 60  # no wait of any case is longer; a slow machine is not a failure

# Of the tool, as docs/cli.md lists them.
HELD, NO_QUORUM, LOST, USAGE, CONFIGURATION, INTERNAL, UNDECIDED, WARNINGS, BROKEN, DEGRADED = range(200, 210)
NOT_EXECUTABLE, NOT_FOUND = 126, 127

CASES = []


def case(sentence, *masters, **how):
    """A case. Its parameter `quorum`, if it has one: a quorum of three masters, or made with these arguments."""
    def add(function):
        def with_quorum():
            with Quorum(*masters, **how) as quorum:
                function(quorum)
        CASES.append((sentence, with_quorum if 'quorum' in inspect.signature(function).parameters else function))
        return function
    return add


SETPRIV = shutil.which('setpriv')


def leashed(words):
    """A command that is killed when this process ends: no test, however it ends, leaves a process running.

    With a function between fork and exec Python would copy itself, which cost more than all that the tools do.
    """
    return [SETPRIV, '--pdeathsig', 'KILL', '--', *map(str, words)]


def adopt_orphans(adopts):
    """Whether orphans among the descendants of this process become its children."""
    PR_SET_CHILD_SUBREAPER = 36
    equal(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(adopts)), 0)


def free_port():
    # Below the ports of outgoing connections: nobody's connection must take a master's.
    while True:
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(('127.0.0.1', port))
            return port


def until(condition, what='a condition'):
    """Waits until the condition is true, and returns its value."""
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f'{what} did not come true in {LIMIT_S} s')


class Skip(Exception):
    """What the case needs is not there."""


def with_module(variable):
    """The environment in which a module of the tests is loaded into the tool. Its path is in this variable."""
    library = os.environ.get(variable)
    if not library or not os.path.exists(library):
        raise Skip(f'the module of {variable} is not built')
    return {'LD_PRELOAD': library}


class ServerError(Exception):
    pass


class Master:
    """A real server in a directory of its own."""

    program = os.environ.get('REDLOCK_REDIS_SERVER') or 'redis-server'

    def __init__(self, directory, options=(), env=None):
        self.directory = directory
        self.options = list(options)
        self.env = os.environ | (env or {})
        for _ in range(10):
            self.port = free_port()
            if self.start():
                return
        raise RuntimeError('no redis-server starts')

    def command(self):
        return [self.program, '--port', str(self.port), '--bind', '127.0.0.1', '--save', '',
                '--appendonly', 'no', '--dir', self.directory, *self.options]

    def start(self):
        self.process = subprocess.Popen(
            leashed(self.command()), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.env)
        limit = time.monotonic() + LIMIT_S
        while self.process.poll() is None and time.monotonic() < limit:
            try:
                self.connect().close()
                return True
            except OSError:
                time.sleep(0.01)
        return False

    def connect(self):
        return socket.create_connection(('127.0.0.1', self.port), 10)

    def ask(self, *words, login=()):
        return ask(self.port, *words, login=login)

    def keys(self):
        """All but the record of the master's memory."""
        return sorted(key for key in self.ask('KEYS', '*') if not key.endswith(':epoch'))

    @property
    def name(self):
        return f'127.0.0.1:{self.port}'

    @property
    def url(self):
        return f'redis://127.0.0.1:{self.port}'

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.kill()
        until(self.start, 'the start of a server')


def ask(port, *words, login=()):
    """Sends one command to a server, as this user, and returns its reply: text, a number, None or a list."""
    with socket.create_connection(('127.0.0.1', port), 10) as connection, connection.makefile('rb') as replies:
        for command in ([('AUTH', *login)] if login else []) + [words]:
            parts = [str(word).encode() for word in command]
            connection.sendall(b'*%d\r\n' % len(parts) + b''.join(b'$%d\r\n%s\r\n' % (len(part), part) for part in parts))
            answer = reply(replies)
        return answer


def reply(stream):
    line = stream.readline()[:-2]
    kind, rest = line[:1], line[1:]
    if kind == b'+':
        return rest.decode()
    if kind == b'-':
        raise ServerError(rest.decode())
    if kind == b':':
        return int(rest)
    if kind == b'$':
        return None if rest == b'-1' else stream.read(int(rest) + 2)[:-2].decode()
    if kind == b'*':
        return [reply(stream) for _ in range(int(rest))]
    raise ServerError(f'no reply: {line}')


class Listener:
    """A server of the test's own: calls `serve` for each connection, in a thread, until it is closed."""

    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = f'redis://127.0.0.1:{self.listener.getsockname()[1]}'
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def close(self):
        self.listener.close()

    @staticmethod
    def command(stream):
        """The words of the next command and its bytes; none at the end of the connection."""
        words, sent = [], stream.readline()
        for _ in range(int(sent[1:] or 0)):
            length = stream.readline()
            word = stream.read(int(length[1:]) + 2)
            words.append(word[:-2].decode(errors='replace'))
            sent += length + word
        return words, sent


class Relay(Listener):
    """Passes bytes on between clients and masters, replies changed and after a delay. Of several masters each connection gets the next."""

    def __init__(self, *masters, seconds=0, change=bytes):
        self.masters = itertools.cycle(masters)
        self.seconds, self.change = seconds, change
        super().__init__()

    def serve(self, client):
        with contextlib.suppress(OSError):
            master = socket.create_connection(('127.0.0.1', next(self.masters).port))
            threading.Thread(target=self.pass_on, args=(client, master, 0, bytes), daemon=True).start()
            self.pass_on(master, client, self.seconds, self.change)

    @staticmethod
    def pass_on(source, target, seconds, change):
        with contextlib.suppress(OSError), source, target:
            while data := source.recv(65_536):
                time.sleep(seconds)
                target.sendall(change(data))


def listed(*urls):
    """The environment of a tool with these masters."""
    return {'REDLOCK_MASTERS': ','.join(one if isinstance(one, str) else one.url for one in urls)}


class Quorum:
    """Masters, a directory, and the tool's environment for them."""

    def __init__(self, count=3, options=()):
        self.stack = contextlib.ExitStack()
        self.directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.masters = [self.add(*options) for _ in range(count)]
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith('REDLOCK_')}
        # They are new, and no case but those that say so restarts one.
        self.env |= listed(*self.masters) | {'REDLOCK_NO_QUARANTINE': '1'}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def add(self, *options, **how):
        """Another master, which is in no list yet."""
        master = Master(str(self.directory), options, **how)
        self.stack.callback(master.kill)
        return master

    def path(self, name):
        return self.directory / name

    def start(self, *words, env=None, tool=None, **how):
        """The tool, or another one, with these words, under way."""
        how = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE,
               'text': True} | how
        process = subprocess.Popen(leashed([tool or TOOL, *words]), env=self.env | (env or {}), **how)
        self.stack.callback(end, process)
        return process

    def run(self, *words, input=None, **how):
        """The tool with these words, to its end."""
        if input is not None:
            how['stdin'] = subprocess.PIPE
        process = self.start(*words, **how)
        out, err = process.communicate(input, timeout=LIMIT_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def keys(self):
        return sorted({key for master in self.masters for key in master.keys()})

    def has_waiter(self):
        """Waits until a client waits for a lock."""
        until(lambda: any('subscribe' in master.ask('CLIENT', 'LIST') for master in self.masters), 'a waiter')

    def everywhere(self, action, *words, first=None):
        """Does this to all masters, or to the first of them: `ask`, `signal` or `kill`."""
        for master in self.masters[:first]:
            getattr(master, action)(*words)

    def under(self, script, *options, resource='a', shell='sh', **how):
        """`run` with a script, when the script has written its first line, and this line."""
        process = self.start('run', *options, resource, '--', shell, '-c', script, **how)
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return process, line.strip()

    def holder(self, resource, *options):
        """A process that has the lock until it is ended."""
        return self.under('echo held; exec sleep 600', *options, resource=resource)[0]


def end(process):
    with process:  # closes its streams, and waits
        process.kill()


def stat_of(pid):
    """The words after the name of a process: its state, its parent, ...; those of a dead one if it is gone."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return ['X']


def alive(pid):
    """Whether a process is there and not a zombie."""
    return stat_of(pid)[0] not in 'ZX'


def children_of(pid):
    try:
        return [int(one) for one in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]
    except OSError:
        return []


def equal(found, expected, what=''):
    if found != expected:
        raise AssertionError(f'{what}{": " if what else ""}{found!r} is not {expected!r}')


def ended(result, status):
    """The exit status, with what the tool said if it is another."""
    if result.returncode != status:
        raise AssertionError(
            f'status {result.returncode} and not {status}; stderr: {result.stderr}')
    return result


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f'{part!r} is not in {text!r}')


def timed_out(*_):
    raise TimeoutError('the case took too long')


def main():
    global TOOL
    TOOL = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2:]
    signal.signal(signal.SIGALRM, timed_out)
    # What nohup, or a shell's background, has ignored stays so in every child, and a script could not trap it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cases = [(name, function) for name, function in CASES if not wanted or name in wanted]
    witness = Witness()
    print(f'1..{len(cases)}')
    failed = 0
    for number, (name, function) in enumerate(cases, 1):
        outcome, explained = witness.again(
            lambda function=function: outcome_of(function),
            lambda result: result[0] != 'ok',
            lambda reason, result, name=name: print(f'{name}: {reason}{result[1]}', file=sys.stderr, flush=True))
        failed += outcome != 'ok'
        print(f'{outcome} {number} - {name}{explained}', flush=True)
    sys.exit(1 if failed else 0)


def outcome_of(function):
    """Of a case, once: the first words of its TAP line, and the last."""
    signal.alarm(3 * LIMIT_S)
    try:
        function()
        return 'ok', ''
    except Skip as reason:
        return 'ok', f' # SKIP {reason}'
    except Exception:  # pylint: disable=broad-except
        return 'not ok', ''.join(f'\n# {line}' for line in traceback.format_exc().splitlines())
    finally:
        signal.alarm(0)
