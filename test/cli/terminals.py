"""Programs on a terminal of their own."""

import contextlib
import os
import pty
import select
import signal
import time

from harness import LIMIT_S

SHELLS = {'bash': ['--norc', '--noprofile', '--noediting', '-i'], 'dash': ['-i']}


class Terminal:
    """A program that leads its session, on a terminal of its own."""

    def __init__(self, quorum, *words):
        self.out = ''
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(quorum.directory)
            os.execvpe(words[0], words, quorum.env | {'PS1': '', 'TERM': 'xterm', 'ENV': ''})
        quorum.stack.callback(self.finish)

    def finish(self):
        os.close(self.terminal)  # a hangup
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def reads(self, what):
        """Waits for this in the output, and returns what came before it. The next call goes on after it."""
        limit = time.monotonic() + LIMIT_S
        while what not in self.out:
            assert select.select([self.terminal], [], [], max(0, limit - time.monotonic()))[0], f'{what!r} is not in {self.out!r}'
            self.out += os.read(self.terminal, 4096).decode(errors='replace')
        before, _, self.out = self.out.partition(what)
        return before

    def ends(self):
        """Waits for the end, and returns the rest of the output and the exit status."""
        with contextlib.suppress(OSError):  # the end
            while part := os.read(self.terminal, 4096):
                self.out += part.decode(errors='replace')
        return self.out, os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT).si_status

    def shows(self, what, key):
        """Presses a key, and returns whether the output has this after a moment."""
        self.type(key)
        while what not in self.out and select.select([self.terminal], [], [], 0.2)[0]:
            self.out += os.read(self.terminal, 4096).decode(errors='replace')
        return what in self.out


class Shell(Terminal):
    """An interactive shell. Nothing that is typed is shown."""

    def __init__(self, quorum, name):
        super().__init__(quorum, name, *SHELLS[name])
        self.count = 0
        self.line('stty -echo; ulimit -c 0; set -m')
        self.synchronize()

    def line(self, text):
        self.type(text + '\n')

    def synchronize(self):
        """Waits for the end of the job in the foreground, and returns its status and all output before this."""
        self.count += 1
        self.line(f'echo "[{self.count} ends" $?]')
        before = self.reads(f'[{self.count} ends ')
        return int(self.reads(']')), before
