#!/usr/bin/env python3
"""The README's first program is the one that is compiled and run: examples/first_lock.cpp."""

import difflib
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
program = (root / "examples" / "first_lock.cpp").read_text()
shown = re.search(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
if shown is None:
    sys.exit("README.md shows no program")
difference = list(
    difflib.unified_diff(
        program.splitlines(), shown[1].splitlines(), "examples/first_lock.cpp", "README.md", lineterm=""
    )
)
if difference:
    sys.exit("\n".join(difference))
