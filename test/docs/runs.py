"""Runs the sh blocks of a page as a reader would: in order, in one shell, in an empty directory or a clone.

Nothing is prepared that the page does not mention: redlock is installed, and so are the examples where the
page says how they are built.

A page has a network and processes of its own where the system lets us make such (its ports are then
nobody else's); elsewhere pages are run one after the other. What it leaves running is killed.

    runs.py DIRECTORY      what run() starts, in there
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
from harness import adopt_orphans, children_of, leashed  # pylint: disable=wrong-import-position

LIMIT_S = 150  # of a page; nothing waits for that long unless it hangs
ISOLATED = ['unshare', '--net', '--pid', '--mount', '--fork', '--kill-child', '--mount-proc']


def isolation():
    """What to put before a command that is to be alone, or [] where that cannot be."""
    for flags in ([], ['--user', '--map-root-user']):
        command = [*ISOLATED[:1], *flags, *ISOLATED[1:]]
        try:
            done = subprocess.run([*command, 'ip', 'link', 'set', 'lo', 'up'], check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return command
    return []


# The part of a clone that a page can need.
CLONE = 'cp -r "$SOURCE_ROOT/deploy" "$SOURCE_ROOT/examples" .'


def before(block):
    return '\n'.join(([CLONE] if block.origin[1]['clone'] else [])
                     + (['unset REDLOCK_REDIS_SERVER'] if block.origin[1]['redis'] else []))


def steps(page):
    """Of each block that is run: (line, what is run before it, text, expected output or None)."""
    found = []
    for index, block in enumerate(page.blocks):
        if block.kind == 'run':
            after = page.blocks[index + 1] if index + 1 < len(page.blocks) else None
            expected = after.lines if after and after.kind == 'output' else None
            found.append((block.line, before(block), block.lines, expected))
    return found


def pattern(expected):
    """`...` is anything within a line; alone in its line, any number of lines."""
    parts = []
    for line in expected:
        if line.strip() == '...':
            parts.append(r'(?:[^\n]*\n)*?')
        else:
            parts.append(r'[^\n]*'.join(re.escape(part) for part in line.rstrip().split('...')) + r'[ \t]*\n')
    return re.compile(''.join(parts))


def output_error(expected, found):
    if expected is None:
        return None
    text = ''.join(line.rstrip() + '\n' for line in found.splitlines())
    if pattern(expected).fullmatch(text):
        return None
    return 'the output is another:\n' + text


def write_script(page, directory):
    """The page as one script, which notes how far it came."""
    lines = ['set -e']
    later = {block.line: block for block in page.blocks if block.kind == 'file'}
    for number, (line, prepare, text, _) in enumerate(steps(page)):
        for at in sorted(at for at in later if at < line):
            block = later.pop(at)
            name = block.origin[1]['path']
            held = directory / f'file-{at}'
            held.write_text('\n'.join(block.lines) + '\n')
            lines += [f'mkdir -p -- {shlex.quote(os.path.dirname(name) or ".")}',
                      f'cp -- {shlex.quote(str(held))} {shlex.quote(name)}']
        step = directory / f'step-{number}'
        step.write_text('\n'.join(text) + '\n')
        lines += [f'echo {number} before > {shlex.quote(str(directory / "reached"))}',
                  f'exec > {shlex.quote(str(directory / f"before-{number}"))} 2>&1', prepare,
                  f'echo {number} itself > {shlex.quote(str(directory / "reached"))}',
                  f'exec > {shlex.quote(str(directory / f"out-{number}"))} 2>&1',
                  f'source {shlex.quote(str(step))}']
    lines += [f'echo all > {shlex.quote(str(directory / "reached"))}']
    (directory / 'script').write_text('\n'.join(lines) + '\n')


def environment(programs, root, build):
    """With what was built in the path, as if it were installed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith('REDLOCK_')}
    folders = dict.fromkeys(os.path.dirname(os.path.abspath(program)) for program in programs)
    env['PATH'] = ':'.join([*folders, env.get('PATH', '/usr/bin:/bin')])
    env |= {'SOURCE_ROOT': str(root), 'LC_ALL': 'C.UTF-8',
            'PKG_CONFIG_PATH': str(build / 'meson-uninstalled'), 'LD_LIBRARY_PATH': str(build / 'lib')}
    if 'REDLOCK_REDIS_SERVER' in os.environ:
        env['REDLOCK_REDIS_SERVER'] = os.environ['REDLOCK_REDIS_SERVER']
    return env


def text_of(path):
    return path.read_text(errors='replace') if path.exists() else ''


def run(page, env, alone):
    """Runs the page. Yields (line, error or None) of each of its steps."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / 'scratch' / 'bin').mkdir(parents=True)
        env = env | {'PATH': f'{directory / "scratch" / "bin"}:{env["PATH"]}',
                     'HOME': str(directory / 'scratch'), 'TMPDIR': str(directory)}
        write_script(page, directory)
        how = 'the page ended here'
        try:
            done = subprocess.run([*alone, *leashed([sys.executable, __file__, name])], env=env, timeout=LIMIT_S + 30,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                how = f'exit status {done.returncode}' + (
                    f': did not end in {LIMIT_S} s' if done.returncode == 124 else '')
        except subprocess.TimeoutExpired:
            how = f'did not end in {LIMIT_S + 30} s'
        yield from outcomes(page, directory, how)


def outcomes(page, directory, how):
    reached, _, part = text_of(directory / 'reached').strip().partition(' ')
    last = len(page.lines) if reached == 'all' else int(reached or 0)
    for number, (line, prepare, _, expected) in enumerate(steps(page)):
        if number > last:
            yield line, 'was not reached'
        elif number == last and part == 'before':
            yield line, f'{how}, in what is run before it: {prepare}\n{text_of(directory / f"before-{number}")}'
        elif number == last:
            yield line, f'{how}; it said:\n{text_of(directory / f"out-{number}")}'
        else:
            yield line, output_error(expected, text_of(directory / f'out-{number}'))


def end_children():
    """What daemons the script has started are ours, since nobody else adopted them."""
    while children := children_of(os.getpid()):
        for child in children:
            os.kill(child, signal.SIGKILL)
        os.wait()


def main(name):
    adopt_orphans(True)
    directory = pathlib.Path(name)
    if os.getpid() <= 2:  # in a namespace of processes, so also in one of networks
        subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    shell = shutil.which('bash') or 'bash'
    script = subprocess.Popen([shell, str(directory / 'script')], cwd=directory / 'scratch')
    try:
        status = script.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        status = 124  # as of timeout(1)
    end_children()
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == '__main__':
    main(sys.argv[1])
