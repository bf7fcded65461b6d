#!/usr/bin/env python3
"""What the documents show is what there is.

The README's first program is the one that is compiled and run, examples/first_lock.cpp; and
docs/operations.md lists the metrics that are on a page for Prometheus, with their types.
"""

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

source = (root / "lib" / "prometheus.cpp").read_text()
types = {"counts": "counter", "measures": "gauge", "distributes": "histogram"}
exported = {(name, types[kind]) for name, kind in re.findall(r'\{"(redlock_\w+)",\s*(\w+),', source)}
table = (root / "docs" / "operations.md").read_text()
listed = set(re.findall(r"^\| `(redlock_\w+)` \| (\w+) \|", table, re.MULTILINE))
if not exported or exported != listed:
    sys.exit(f"docs/operations.md and lib/prometheus.cpp differ in {sorted(exported ^ listed)}")
