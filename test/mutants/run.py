"""Runs the tests against one mutant after the other, cheapest first, until one of them fails. For a matrix, all of them."""

import collections
import concurrent.futures
import contextlib
import hashlib
import html
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

import tree

KILLED, SURVIVED, NOT_REACHED = 'killed', 'survived', 'not reached'
QUICK = 0.1  # seconds of a case; what takes longer is run after the others
MEMORY = 4 << 30
OUTPUT = 32 << 20
IDLE = 60  # seconds in which a program uses next to nothing of the processor
NEXT_TO_NOTHING = 10  # ticks: a program that hangs may look at a clock now and then
TRACED_SEEDS = 40
HANGS = 6  # of the cases of a row of the matrix; after these the row is left as it is
AT_ONCE = 2  # seconds of the cases of a row that one process runs, as they were when traced
ENDED = re.compile(r'<TestCase name="([^"]*)"|<OverallResult success="(true|false)"')  # of Catch2's XML
# It compares the text of a script rather than what it does.
TEXT_ONLY = 'base_test.cpp'


Ended = collections.namedtuple('Ended', ('status', 'seconds', 'output', 'why'))


def environment(one):
    return {'REDLOCK_MUTANT': f'{one.number:08x}'}


def watch(pid, ended):
    """Kills a program that waits for what never comes. One that another program keeps from running, or has
    stopped, is not idle: it must not count as hung because the machine is busy."""
    used, since = 0, time.monotonic()
    while not ended.wait(1):
        try:
            fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
        except OSError:
            return
        now = int(fields[11]) + int(fields[12])
        if now - used > NEXT_TO_NOTHING or fields[0] in 'RT':
            used, since = now, time.monotonic()
        if time.monotonic() - since > IDLE:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            return


def execute(command, processor, **environment):
    """Runs a program with limits. `why` says how it ended if not by itself."""
    limit = max(1, round(processor))

    def confine():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.nice(5)

    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=dict(os.environ, **environment), preexec_fn=confine, start_new_session=True,
        )  # fmt: skip
        ended = threading.Event()
        watcher = threading.Thread(target=watch, args=(child.pid, ended))
        watcher.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
        finally:
            ended.set()
            watcher.join()
        child.returncode = status = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # what it started
        output.seek(0)
        text = output.read().decode(errors='replace')
    why = ''
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        why = 'hangs'
    elif status < 0:
        why = f'crashes ({signal.Signals(-status).name})'
    return Ended(status, used.ru_utime + used.ru_stime, text, why)


class Coverage:
    """Which cases and profiles reach which mutants, and how long they take."""

    def __init__(self, copy, jobs, say, tests=(tree.UNIT,), hunts=True):
        self.copy = copy
        self.tests = [copy.program(one) for one in tests]
        self.unit = self.tests[0]
        self.hunt = copy.program(tree.HUNT) if hunts else None
        self.state = self.fingerprint()
        self.files = self.list_cases()
        path = copy.place / ('coverage.json' if hunts else 'coverage-matrix.json')
        stored = json.loads(path.read_text()) if path.exists() else {}
        if stored.get('state') != self.state:
            say('looking which cases reach which mutants')
            listed = execute([self.hunt, '--list'], 60).output.splitlines() if self.hunt else []
            profiles = [line.split()[0] for line in listed]
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                stored = {
                    'state': self.state,
                    'cases': dict(zip(self.files, pool.map(self.trace_case, self.files))),
                    'profiles': dict(zip(profiles, pool.map(self.trace_profile, profiles))),
                }
            path.write_text(json.dumps(stored))
        self.cases, self.profiles = stored['cases'], stored['profiles']
        self.index()

    def fingerprint(self):
        digest = hashlib.sha1()
        for program in filter(None, (*self.tests, self.hunt)):
            digest.update(program.read_bytes())
        return digest.hexdigest()

    def list_cases(self):
        """Name -> file it is in. Notes the program and the place of each."""
        self.program_of, self.places = {}, {}
        for program in self.tests:
            ended = execute([program, '--list-tests', '--reporter', 'json'], 60)
            for one in json.loads(ended.output)['listings']['tests']:
                if not any(tag.startswith('.') or tag == '!' for tag in one['tags']):
                    self.program_of[one['name']] = program
                    where = one['source-location']
                    self.places[one['name']] = (pathlib.Path(where['filename']), where['line'])
        return {name: path.name for name, (path, _) in self.places.items()}

    def trace(self, name, command):
        with tempfile.NamedTemporaryFile() as out:
            ended = execute(command, 120, REDLOCK_MUTANT_TRACE=out.name)
            if ended.status != 0:
                raise tree.Broken(f'without any mutant this fails: {name}\n{ended.output[-3000:]}')
            return {'seconds': ended.seconds, 'reached': pathlib.Path(out.name).read_text().split()}

    def trace_case(self, name):
        with case_file([name]) as listed:
            return self.trace(name, [self.program_of[name], '-f', listed])

    def trace_profile(self, name):
        return self.trace(name, self.hunt_in([name], 1, TRACED_SEEDS))

    def hunt_in(self, profiles, first, count):
        """The simulator with these seeds, over the profiles in turn, up to the first violation."""
        return [self.hunt, '--brief', '--seeds', f'{first}..{first + count - 1}', '--profile', *profiles]

    def index(self):
        self.by_number = collections.defaultdict(lambda: ([], []))
        for which, known in enumerate((self.cases, self.profiles)):
            for name, found in known.items():
                for number in found['reached']:
                    self.by_number[int(number, 16)][which].append(name)
        self.script_numbers = {}
        for _, text, mutants in self.copy.scripts:
            number = int(hashlib.sha1(text.encode()).hexdigest()[:8], 16)
            for one in mutants:
                self.script_numbers[one.key] = number

    def of(self, one):
        """(cases, profiles) that reach a mutant."""
        cases, profiles = self.by_number.get(self.script_numbers.get(one.key, one.number), ([], []))
        if one.text:
            cases = [name for name in cases if self.files.get(name) != TEXT_ONLY]
        return cases, profiles

    def impossible(self, one):
        return ~one.number & 0xFFFFFFFF in self.by_number and one.number not in self.by_number


@contextlib.contextmanager
def case_file(names):
    """Names of cases, for Catch2's --input-file."""
    with tempfile.NamedTemporaryFile('w') as out:
        for name in names:
            escaped = re.sub(r'([\\,\["*])', r'\\\1', name)
            out.write(f'"{escaped}"\n')
        out.flush()
        yield out.name


class Results:
    """What is known so far: one line of JSON for each mutant that was judged, the last one counts."""

    def __init__(self, path):
        self.path = path
        self.known = {}
        self.lock = threading.Lock()
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    one = json.loads(line)
                except ValueError:
                    continue  # the last line of a run that was killed
                self.known[one['key']] = one

    def add(self, one):
        with self.lock:
            self.known[one['key']] = one
            with self.path.open('a') as out:
                out.write(json.dumps(one) + '\n')


def ended_cases(output):
    """Case -> whether it failed, from Catch2's XML. A case that did not end, as the process did, has failed."""
    failed, name = {}, None
    for started, good in ENDED.findall(output):
        if started:
            name = html.unescape(started)
            failed[name] = True
        elif name:
            failed[name] = good == 'false'
    return failed


class Matrix:
    """Which of the cases that reach a mutant fail. A process that ends early hides no case: the rest is run again."""

    def __init__(self, coverage, path, longest, run=execute):
        self.coverage = coverage
        self.slow = {name for name, case in coverage.cases.items() if case['seconds'] > longest}
        self.results = Results(path)
        self.run = run

    def row(self, one):
        """What is known of a mutant, or is found out now."""
        known = self.results.known.get(one.key)
        if known and known['state'] == self.coverage.state:
            return known
        began, failed, hangs = time.monotonic(), [], 0
        cases = [name for name in self.coverage.of(one)[0] if name not in self.slow]
        for program in dict.fromkeys(self.coverage.program_of[name] for name in cases):
            left = [name for name in cases if self.coverage.program_of[name] == program]
            while left and hangs < HANGS:
                some, needed = [], 0
                while len(some) < len(left) and (not some or needed < AT_ONCE):
                    needed += self.coverage.cases[left[len(some)]]['seconds']
                    some.append(left[len(some)])
                with case_file(some) as listed:
                    # To trace takes longer than to run, so this is several times what is needed.
                    ended = self.run([program, '-f', listed, '--reporter', 'xml'], 1 + 2 * needed, **environment(one))
                hangs += ended.why == 'hangs'
                done = ended_cases(ended.output)
                if not any(name in done for name in some):
                    done[some[0]] = True  # it ended before its first case
                failed += [name for name in some if done.get(name)]
                left = [name for name in left if name not in (done if ended.why else some)]
        found = {
            'key': one.key,
            'cases': failed,
            'seconds': round(time.monotonic() - began, 2),
            'state': self.coverage.state,
            'complete': hangs < HANGS,
        }
        self.results.add(found)
        return found


def lengths(places):
    """Case -> its lines: up to the next case of its file, or the end."""
    found = {}
    for path in {path for path, _ in places.values()}:
        total = len(path.read_text().splitlines()) if path.exists() else 0
        starts = sorted((line, name) for name, (of, line) in places.items() if of == path)
        for (line, name), (following, _) in zip(starts, [*starts[1:], (total + 1, '')]):
            found[name] = max(1, following - line)
    return found


def chosen_cases(rows, costs):
    """(cases that alone kill a mutant, more that kill each other mutant twice over at the least cost).

    `rows`: for each mutant the cases that kill it. The second is the usual approximation: always the case that
    adds most for its cost."""
    alone = sorted({cases[0] for cases in rows if len(cases) == 1})
    missing = {i: 2 - sum(case in alone for case in cases) for i, cases in enumerate(rows) if len(cases) > 1}
    kills = collections.defaultdict(set)
    for i, needed in missing.items():
        for case in rows[i] if needed > 0 else ():
            if case not in alone:
                kills[case].add(i)
    cover = []
    while kills:
        best = min(kills, key=lambda case: (-len(kills[case]) / costs[case], case))
        cover.append(best)
        for i in kills.pop(best):
            missing[i] -= 1
            if missing[i] == 0:
                for case in rows[i]:
                    if case in kills:
                        kills[case].discard(i)
        kills = {case: them for case, them in kills.items() if them}
    return alone, sorted(cover)


class Judge:
    def __init__(self, coverage, results, seeds, first):
        self.coverage = coverage
        self.results = results
        self.seeds = seeds
        self.first = first
        self.killers = collections.Counter(
            one['by'] for one in results.known.values() if one['outcome'] == KILLED and one.get('by')
        )
        self.per_seed = sum(one['seconds'] for one in coverage.profiles.values()) / (
            TRACED_SEEDS * max(1, len(coverage.profiles))
        )

    def judged(self, one):
        """What is known of it with these very programs, if that is enough."""
        known = self.results.known.get(one.key)
        if not known or known['state'] != self.coverage.state:
            return None
        if known['outcome'] != KILLED and known['seeds'] < self.seeds:
            return None
        return known

    def judge(self, one):
        began = time.monotonic()
        outcome, by, how = self.find_killer(one)
        found = {
            'key': one.key,
            'outcome': outcome,
            'by': by,
            'how': how,
            'seconds': round(time.monotonic() - began, 2),
            'state': self.coverage.state,
            'seeds': self.seeds,
        }
        self.results.add(found)
        return found

    def find_killer(self, one):
        reach, profiles = self.coverage.of(one)
        cases = [name for name in reach if self.coverage.program_of[name] == self.coverage.unit]
        known = self.results.known.get(one.key, {})
        stages = []
        if known.get('by') in cases:
            stages.append([known['by']])
        quick = [name for name in cases if self.coverage.cases[name]['seconds'] <= QUICK]
        # Most mutants die of the few cases that have killed most.
        deadly = sorted(quick, key=lambda name: -self.killers[name])[:12]
        stages += [deadly, [name for name in quick if name not in deadly]]
        stages.append([name for name in cases if name not in quick])
        for stage in stages:
            if stage and (killed := self.run_cases(one, stage)):
                return killed
        if profiles and self.seeds and (killed := self.run_profiles(one, profiles)):
            return killed
        real = [name for name in reach if name not in cases]
        if real and (killed := self.run_cases(one, real)):
            return killed
        return (SURVIVED if reach or profiles else NOT_REACHED), '', ''

    def run_cases(self, one, cases):
        needed = sum(self.coverage.cases[name]['seconds'] for name in cases)
        with case_file(cases) as listed:
            program = self.coverage.program_of[cases[0]]
            command = [program, '-f', listed, '--abort', '--reporter', 'xml']
            ended = execute(command, 2 + 6 * needed, **environment(one))
        if ended.status == 0:
            return None
        failed = ended_cases(ended.output)
        by = next((name for name in cases if failed.get(name)), cases[0] if len(cases) == 1 else '')
        self.killers[by] += 1
        suite = 'unit' if program == self.coverage.unit else 'net'
        return KILLED, by, f'{suite}{": " + ended.why if ended.why else ""}'

    def run_profiles(self, one, profiles):
        # In the first round those that have killed most, so that they come early.
        order = sorted(profiles, key=lambda name: -self.killers[name])
        command = self.coverage.hunt_in(order, self.first, self.seeds)
        ended = execute(command, 5 + 8 * self.seeds * self.per_seed, **environment(one))
        if ended.status == 0:
            return None
        violation = ended.output.rstrip('\n').rpartition('\n')[2]
        by = violation.split(' ', 1)[0] if ended.status == 1 else ''
        self.killers[by] += 1
        text = ended.why or violation[:100]
        return KILLED, by, f'simulation: {text}'
