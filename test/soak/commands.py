#!/usr/bin/env python3
"""Commands under `redlock run` on five real masters, under real faults, and one verdict.

    commands.py REDLOCK [--seconds N] [--seed S] [--verbose] [--calm]

Six loops of `redlock run` want two locks. Half of the commands ignore TERM and use their whole
grace; each has a child in a session of its own that always does. During that time masters are
killed, flushed, stopped, promoted (a replica takes over the address, up to date or not) and replaced
(an empty server that was up for long takes over the address). Three can vote at any time. Of a command
either the tool or the supervisor is killed or stopped, not both.

What must not happen, and is counted:
  overlaps     two commands on one name that lived at one moment, by what they and their children
               wrote themselves (command.py): proven, never guessed
  tokens       a fencing token that is not larger than those of all commands that began before
  keys         a key that lasts for longer than its ttl, or that is there a ttl after its run ended
  processes    of any run, when all runs have ended and their time is over
  progress     at the end, with all faults over, both names can be locked
Exit status: 0 none of it happened, 1 something did, 2 the run says nothing.
"""

import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'cli'))
# pylint: disable=wrong-import-position
from harness import Master, ServerError, children_of, free_port, leashed, listed
from hearts import now

MASTERS, LOOPS, NAMES = 5, 6, ('one', 'two')
QUORUM = MASTERS // 2 + 1
TTL_S, GRACE_S = 3.0, 1.0
# Of max_ttl, the rates' and the offsets' bounds, and some more: how long a master that forgot is out.
QUARANTINE_S = TTL_S * 1.05 + 1.0
SLACK_S = 0.5  # what a scan of the masters may be late
PATIENCE_S = 60
TICK_S = 0.01


def key_of(name):
    return f'redlock:{{{name}}}'


class Server(Master):
    all = []

    def __init__(self, directory, durable=False, master=None):
        Server.all.append(self)
        directory.mkdir()
        options = ['--repl-diskless-sync-delay', '0', '--loglevel', 'warning']
        if durable:
            options[:0] = ['--appendonly', 'yes', '--appendfsync', 'always']
        super().__init__(str(directory), options)
        if master:
            self.ask('REPLICAOF', '127.0.0.1', master.port)

    def look(self, *words):
        """The reply, or None where there is none at the moment."""
        try:
            return self.ask(*words)
        except (OSError, ServerError):
            return None


@dataclasses.dataclass
class Place:
    """Where the clients look for one master."""

    server: Server
    out_until: float = 0  # it may not vote before
    stopped: tuple = (0, 0)  # the last time, from and until
    fault: object = None  # what goes on: gives the seconds to its next step
    due: float = 0  # that step


# What one process of a command wrote of itself (command.py).
Life = collections.namedtuple('Life', ('began', 'last', 'token', 'key'))


@dataclasses.dataclass
class Run:
    """One command under the lock."""

    number: int
    name: str
    process: subprocess.Popen
    directory: pathlib.Path
    hurt: bool = False
    ended: float = None

    def lives(self):
        written = [path.read_text().split() for path in self.directory.iterdir()]
        return [Life(int(words[5]), int(words[6]), int(words[2]), words[3])
                for words in written if len(words) == 7]  # else it had no time to

    def supervisor(self):
        """The supervisor's process, while there is one."""
        with contextlib.suppress(OSError):
            for child in children_of(self.process.pid):
                if pathlib.Path(f'/proc/{child}/comm').read_text().strip() == 'redlock-superv':
                    return child
        return None


class Soak:
    def __init__(self, options, directory):
        self.options = options
        self.random = random.Random(options.seed)
        self.directory = directory
        self.lives = directory / 'lives'
        self.lives.mkdir()
        self.places = [Place(self.server(durable=i % 2 == 0)) for i in range(MASTERS)]
        self.spare = self.server()
        self.env = {key: value for key, value in os.environ.items() if not key.startswith('REDLOCK_')}
        self.env |= listed(*(place.server for place in self.places)) | {
            'REDLOCK_MAX_TTL': f'{TTL_S * 1000:.0f}ms',
            'REDLOCK_CLOCK_OFFSET_BOUND': '100ms',
            'REDLOCK_SOAK': str(directory)}  # by which processes are found
        if options.calm:
            self.env['REDLOCK_NO_QUARANTINE'] = '1'
        self.runs = [None] * LOOPS
        self.all_runs = []
        self.stopped = []  # or killed: (until, process as a file descriptor)
        self.faults = collections.Counter()
        self.next_master_fault = self.next_run_fault = self.next_scan = 0
        self.late_keys = {}  # where: how late
        self.keys = {}  # the lock's token, and the run, of those that have ended
        self.seen_names = set()
        self.began = now()

    def server(self, **how):
        return Server(self.directory / f'server-{len(Server.all)}', **how)

    def say(self, what):
        if self.options.verbose:
            print(f'{now() - self.began:9.3f} {what}', flush=True)

    def count(self, kind, on):
        self.faults[kind] += 1
        self.say(f'{kind}: {on}')

    # --- Runs -------------------------------------------------------------------------------------

    def start(self, loop, name=None, short=False):
        number = len(self.all_runs)
        name = name or NAMES[loop % len(NAMES)]
        heeds = number % 2
        kind = 'short' if short else self.random.choices(('short', 'overdue', 'renewed'), (6, 3, 1))[0]
        lasts = {'short': self.random.uniform(0.02, 0.4), 'overdue': 600,
                 'renewed': self.random.uniform(0.5, 2) * TTL_S}[kind]
        words = ['run', '--fencing', '--ttl', f'{TTL_S * 1000:.0f}ms', '--grace', f'{GRACE_S * 1000:.0f}ms',
                 '--wait', '20s']
        if kind == 'overdue':  # the lease ends, and the command has its grace
            words += ['--max-hold', f'{self.random.uniform(0.8, 1.5) * TTL_S * 1000:.0f}ms']
        lives = self.lives / str(number)
        lives.mkdir()
        command = [sys.executable, '-I', '-S', str(HERE / 'command.py'), str(lives), str(number),
                   f'{lasts:.3f}', str(heeds)]
        env = self.env
        wrong = self.options.unsafe
        if wrong == 'no-lock':
            tokens = {'REDLOCK_RESOURCE': name, 'REDLOCK_TOKEN': f'{number:040x}',
                      'REDLOCK_FENCING_TOKEN': str(time.clock_gettime_ns(time.CLOCK_BOOTTIME))}
            # In a group that ends with its first process, as under a supervisor.
            line = ['timeout', '-s', 'KILL', '5', *command]
            env = env | tokens
        else:
            if wrong == 'one-token':
                command = ['env', 'REDLOCK_FENCING_TOKEN=1', *command]
            line = [self.options.redlock, *words, name, '--', *command]
        process = subprocess.Popen(
            leashed(line), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run = Run(number, name, process, lives)
        self.runs[loop] = run
        self.all_runs.append(run)

    def look_at_runs(self, go_on):
        for loop, run in enumerate(self.runs):
            if run is not None and run.process.poll() is not None:
                run.ended = now()
                self.runs[loop] = None
                for life in run.lives():
                    self.keys[life.key] = run
                    self.seen_names.add(run.name)
            if go_on and self.runs[loop] is None:
                self.start(loop)

    # --- Faults -----------------------------------------------------------------------------------

    def hurt_master(self):
        whole = [place for place in self.places if not place.fault and place.out_until <= now()]
        if len(whole) > QUORUM:
            place = self.random.choice(whole)
            fault = self.random.choice((
                self.kill, self.flush, self.stop, self.promote, self.promote, self.replace, self.drop))
            place.fault = fault(place, f'master {self.places.index(place)}')
            place.due = 0

    def mend(self):
        for place in self.places:
            if place.fault and now() >= place.due:
                pause = next(place.fault, None)
                place.due = now() + (pause or 0)
                place.fault = place.fault if pause is not None else None

    def kill(self, place, on):
        self.count('master killed, started again', on)
        place.server.kill()
        yield self.random.uniform(0, 1)
        if not place.server.start():
            raise RuntimeError('a master does not start')
        place.out_until = now() + QUARANTINE_S

    def flush(self, place, on):
        self.count('FLUSHALL', on)
        place.server.ask('FLUSHALL')
        place.out_until = now() + QUARANTINE_S
        yield 0

    def stop(self, place, on):
        self.count('master stopped', on)
        place.server.signal(signal.SIGSTOP)
        place.stopped = (now(), float('inf'))
        yield self.random.uniform(0.05, 1.5 * TTL_S)
        place.server.signal(signal.SIGCONT)
        place.stopped = (place.stopped[0], now())
        place.out_until = now() + 1.0  # until all are connected again

    def promote(self, place, on):
        stale = self.random.random() < 0.5
        replica = self.server(durable=self.random.random() < 0.5, master=place.server)
        limit = now() + 10
        while 'master_link_status:up' not in (replica.look('INFO', 'replication') or ''):
            if now() > limit:
                replica.kill()
                return
            yield 0.1
        if stale:  # it hears no more of its master from now on
            replica.ask('REPLICAOF', '127.0.0.1', free_port())
        yield self.random.uniform(0.05, 1.5) * (TTL_S if stale else 0.2)
        self.count('stale replica promoted' if stale else 'replica promoted', on)
        place.server.kill()
        replica.ask('REPLICAOF', 'NO', 'ONE')
        self.take_over(place, replica)

    def replace(self, place, on):
        self.count('master replaced by a server that was up', on)
        place.server.kill()
        yield self.random.uniform(0, 1)
        self.take_over(place, self.spare)
        self.spare = self.server()

    def drop(self, place, on):
        self.count('connections dropped, scripts forgotten', on)
        place.server.ask('SCRIPT', 'FLUSH')
        place.server.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        yield 0

    def take_over(self, place, server):
        """Another server listens there from now on."""
        server.ask('CONFIG', 'SET', 'port', place.server.port)
        server.port = place.server.port
        place.server = server
        place.out_until = now() + QUARANTINE_S

    def hurt_run(self):
        there = [run for run in self.runs if run and not run.hurt]
        with_command = [run for run in there if any(run.directory.iterdir())]
        if with_command and self.random.random() < 0.7:
            there = with_command
        if not there:
            return
        run = self.random.choice(there)
        who = self.random.choice(('tool', 'supervisor'))
        pid = run.process.pid if who == 'tool' else run.supervisor()
        if pid is None:
            return
        kills = self.random.random() < 0.4
        try:
            process = os.pidfd_open(pid)
            signal.pidfd_send_signal(process, signal.SIGKILL if kills else signal.SIGSTOP)
        except ProcessLookupError:
            return
        run.hurt = True
        self.count(f'{who} {"killed" if kills else "stopped"}', f'run {run.number} of {run.name}')
        self.stopped.append((now() + self.random.uniform(0.1, 2 * TTL_S), process))

    def continue_stopped(self):
        for until, process in list(self.stopped):
            if now() >= until:
                self.stopped.remove((until, process))
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, signal.SIGCONT)
                os.close(process)

    # --- What is looked at --------------------------------------------------------------------------

    def scan(self):
        """Keys that should not be there any more."""
        for place in self.places:
            if place.server.process.poll() is not None or now() < place.stopped[1]:
                continue
            for name in NAMES:
                where = f'{name} on master {self.places.index(place)}'
                asked = now()
                token = place.server.look('GET', key_of(name))
                if token is None:
                    continue
                left = place.server.look('PTTL', key_of(name)) or 0
                if left > TTL_S * 1000 or left == -1:
                    self.late_keys.setdefault(where, f'{where} has a ttl of {left} ms')
                run = self.keys.get(token)
                if run is None:
                    continue
                # A master that was stopped may have read an extension only afterwards, which it does
                # while the lease lasts.
                began, over = place.stopped
                delayed = began < run.ended and over > run.ended - TTL_S
                if asked > run.ended + (2 if delayed else 1) * TTL_S + SLACK_S:
                    self.late_keys[where, token] = (
                        f'{where} is there {asked - run.ended:.1f} s after run {run.number} had ended')

    def processes(self):
        """Of the runs: each process that has our mark in its environment, except zombies."""
        mark = f'REDLOCK_SOAK={self.directory}'.encode()
        found = []
        for entry in pathlib.Path('/proc').iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / 'environ').read_bytes().split(b'\0'):
                        words = (entry / 'cmdline').read_bytes().replace(b'\0', b' ').decode(errors='replace')
                        found.append(f'{entry.name} {words}')
                except OSError:
                    pass
        return found

    def end(self):
        """Nothing of ours outlives us."""
        for run in filter(None, self.runs):
            run.process.kill()
        for one in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(one.split()[0]), signal.SIGKILL)
        for server in Server.all:
            server.kill()

    # --- From the beginning to the end --------------------------------------------------------------

    def step(self, faults=False, go_on=False):
        self.look_at_runs(go_on)
        self.continue_stopped()
        self.mend()
        moment = now()
        if faults and not self.options.calm:
            if moment >= self.next_master_fault:
                self.hurt_master()
                self.next_master_fault = moment + self.random.uniform(0.2, 2)
            if moment >= self.next_run_fault:
                self.hurt_run()
                self.next_run_fault = moment + self.random.uniform(0.2, 2)
        if moment >= self.next_scan:
            self.scan()
            self.next_scan = moment + 0.5
        time.sleep(TICK_S)

    def wait(self, condition, limit, go_on=False):
        end = now() + limit
        while not condition():
            if now() > end:
                return False
            self.step(go_on=go_on)
        return True

    def soak(self):
        """Gives what happened and must not, the number of commands, and the smallest gap between two."""
        # Masters that are new do not vote yet.
        if not self.wait(lambda: self.seen_names == set(NAMES), PATIENCE_S, go_on=True):
            return None
        self.began = now()
        end = self.began + self.options.seconds
        while now() < end:
            self.step(faults=True, go_on=True)
        self.wait(lambda: not self.stopped and not any(place.fault for place in self.places), PATIENCE_S)
        # What still waits or works gets its end; then both names are free again, within a quarantine.
        self.wait(lambda: not any(self.runs), 3 * TTL_S + 20)
        for run in filter(None, self.runs):
            self.say(f'run {run.number} does not end')
            run.process.terminate()
        self.wait(lambda: not any(self.runs), PATIENCE_S)
        progress = self.progress()
        over = now()
        if self.options.unsafe == 'old-key':
            self.places[1].server.ask('SET', key_of(NAMES[0]), 'f' * 40, 'PX', 600_000)
        self.wait(lambda: now() > over + 2 * TTL_S + SLACK_S, 60)
        for i, place in enumerate(self.places):
            for name in NAMES:
                if place.server.process.poll() is None and place.server.ask('GET', key_of(name)) is not None:
                    self.late_keys[i, name] = f'{name} on master {i} is there when all runs have ended'
        if self.options.unsafe == 'left-process':
            subprocess.Popen(leashed(['sleep', '30']), env=self.env)
        self.wait(lambda: not self.processes(), 5)
        return self.judge(progress)

    def progress(self):
        if self.options.unsafe == 'dead-end':
            for place in self.places:
                place.server.kill()
        done = []
        limit = now() + PATIENCE_S / (1 if self.options.unsafe is None else 4)
        for loop, name in enumerate(NAMES):
            run = None
            while now() < limit and (run is None or self.runs[loop] is not None or run.process.returncode != 0):
                if self.runs[loop] is None:
                    self.start(loop, name, short=True)
                    run = self.runs[loop]
                self.step()
            done.append(run is not None and run.process.returncode == 0)
        for run in filter(None, self.runs):
            run.process.terminate()
        self.wait(lambda: not any(self.runs), PATIENCE_S)
        return all(done)

    def judge(self, progress):
        found = {'OVERLAPS': [], 'TOKENS OUT OF ORDER': [], 'KEYS BEYOND THEIR BOUND': sorted(self.late_keys.values()),
                 'PROCESSES LEFT': self.processes(), 'NO PROGRESS': [] if progress else ['not both names could be locked']}
        commands, gaps = 0, []
        for name in NAMES:
            tenures = []
            for run in self.all_runs:
                lives = run.lives() if run.name == name else []
                if lives:
                    tenures.append((min(life.began for life in lives), max(life.last for life in lives),
                                    min(life.token for life in lives), run.number))
            tenures.sort()
            commands += len(tenures)
            busy, highest, last = 0, -1, None
            for began, until, token, number in tenures:
                if last is not None:
                    gaps.append((began - busy) / 1e6)
                if began < busy:
                    found['OVERLAPS'].append(
                        f'{name}: run {number} began at {began / 1e9 - self.began:.3f}, '
                        f'{(busy - began) / 1e6:.1f} ms before the end of run {last}')
                if token <= highest:
                    found['TOKENS OUT OF ORDER'].append(f'{name}: run {number} has {token}, after {highest}')
                if until > busy:
                    busy, last = until, number
                highest = max(highest, token)
        return found, commands, min(gaps, default=0)


def main():
    parser = argparse.ArgumentParser(description='Commands under redlock run, under faults.')
    parser.add_argument('redlock', help='the tool')
    parser.add_argument('--seconds', type=float, default=60, help='how long')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1_000_000), help='of the faults')
    parser.add_argument('--verbose', action='store_true', help='print each fault')
    parser.add_argument('--calm', action='store_true', help='without faults')
    parser.add_argument('--unsafe', choices=(
        'no-lock', 'one-token', 'old-key', 'left-process', 'dead-end'), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.redlock = os.path.abspath(options.redlock)
    print(f'soak: seed {options.seed}, {MASTERS} masters, {LOOPS} loops on {len(NAMES)} names, '
          f'ttl {TTL_S:g} s, {options.seconds:g} s', flush=True)
    with tempfile.TemporaryDirectory(prefix='redlock-soak-') as directory:
        soak = Soak(options, pathlib.Path(directory))
        try:
            verdict = soak.soak()
            if verdict is None:
                print('no command ran before any fault')
                return 2
            found, commands, smallest_gap = verdict
            print(f'{"commands":<42} {commands}')
            print('faults')
            for kind, count in sorted(soak.faults.items()):
                print(f'  {kind:<40} {count}')
            for what, these in found.items():
                print(f'{what:<42} {len(these)}')
                for one in these[:10]:
                    print(f'  {one}')
            print(f'{"smallest gap between two commands":<42} {smallest_gap:.1f} ms')
            print('BROKEN' if any(found.values()) else 'held', flush=True)
            return 1 if any(found.values()) else 0
        finally:
            soak.end()


if __name__ == '__main__':
    sys.exit(main())
