"""The list of mutants that may survive: a name, and below it, indented, why."""


class Malformed(Exception):
    pass


def read(path):
    """Name -> reason."""
    known, name = {}, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith('#'):
            continue
        if line.startswith(' '):
            if name is None:
                raise Malformed(f'{path.name}:{number}: a reason without a mutant')
            known[name] = f'{known[name]} {line.strip()}'.strip()
        else:
            if name is not None and not known[name]:
                raise Malformed(f'{path.name}:{number - 1}: no reason')
            if line in known:
                raise Malformed(f'{path.name}:{number}: this is listed twice')
            name = line
            known[name] = ''
    if name is not None and not known[name]:
        raise Malformed(f'{path.name}: the last mutant has no reason')
    return known
