#!/usr/bin/env python3
"""Doxygen's view of a header: filter.py FILE

The first comment is the file's. The inline namespace is left out, as nobody writes it.
"""

import pathlib
import re
import sys

text = pathlib.Path(sys.argv[1]).read_text().replace(' inline namespace REDLOCK_ABI {', '')
text = re.sub(r'^\}(\}+ // namespace redlock)::REDLOCK_ABI', r'\1', text, flags=re.M)
first = re.match(r'(?://.*\n)*', text)[0]
text = '/// \\file\n' + first.replace('// ', '/// ').replace('//\n', '///\n') + text[len(first):]
sys.stdout.write(text)
