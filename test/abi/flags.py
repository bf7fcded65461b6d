"""Which compiler flags of a program fit the library, and what happens with the others.

flags.py LIBRARY INCLUDE_DIRECTORY... -- COMPILER...

A flag that changes the layout of a type or the reactor of Asio must end in a link error that names
it. A flag that cannot work must end in an #error. No program may crash or hang.
"""

import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """#include <redlock/version.hpp>
int main() { return redlock::version()[0] == '?' ? 1 : 0; }
"""

# flag, the step that must fail, what it must say
FLAGS = [
    (None, None, ""),
    ("-DNDEBUG", None, ""),
    ("-D_GLIBCXX_ASSERTIONS", None, ""),
    ("-D_GLIBCXX_DEBUG", "link", "_debug::version()"),
    ("-DBOOST_ASIO_DISABLE_THREADS", "link", "_nothreads::version()"),
    ("-DBOOST_ASIO_ENABLE_HANDLER_TRACKING", "link", "_tracking::version()"),
    ("-DBOOST_ASIO_DISABLE_EPOLL", "link", "_noepoll::version()"),
    ("-fno-rtti", "compile", "needs RTTI"),
]


def main(arguments):
    end = arguments.index("--")
    library, *include = arguments[:end]
    compiler = arguments[end + 1 :]
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        source = pathlib.Path(place, "program.cpp")
        source.write_text(PROGRAM)
        for flag, fails, says in FLAGS:
            flags = [flag] if flag else []
            steps = {
                "compile": ["-std=c++20", "-c", *flags, *(f"-I{d}" for d in include), source, "-o", f"{place}/o"],
                "link": [f"{place}/o", library, f"-Wl,-rpath,{pathlib.Path(library).parent}", "-o", f"{place}/program"],
                "run": None,
            }
            failed, text = None, ""
            for step, options in steps.items():
                command = [f"{place}/program"] if options is None else [*compiler, *options]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    failed, text = step, done.stderr
                    break
            if failed != fails or says not in text:
                faults += 1
                print(f"{flag}: failed to {failed}, expected {fails} with '{says}'\n{text}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
