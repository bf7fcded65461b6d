"""From the values of rounds to a table for people and to the JSON of quorum_bench."""

import statistics

from sides import METRICS, Ours

BASE = 'redlock, plain'


def spread(values):
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {'median': statistics.median(known), 'min': min(known), 'max': max(known)}


def ratios_to(base, values):
    """Round by round, as in quorum_bench."""
    return spread([
        one / other if one is not None and other else None
        for one, other in zip(values, base)
    ])


class Table:
    def __init__(self):
        self.values = {}  # (K, label) -> metric -> a value per round

    def add(self, in_flight, label, values):
        row = self.values.setdefault((in_flight, label), {name: [] for name in METRICS})
        for name in METRICS:
            row[name].append(values[name])

    def rows(self):
        for (in_flight, label), measured in self.values.items():
            row = {'at': {'K': in_flight, 'side': label}, 'metrics': {}, 'ratios': {}}
            base = self.values.get((in_flight, BASE))
            for name, values in measured.items():
                figures = spread(values)
                if figures is None:
                    continue
                row['metrics'][name] = {**figures, 'rounds': values}
                ratio = ratios_to(base[name], values) if base and label != BASE else None
                if ratio:
                    row['ratios'][name] = {'to': BASE, **ratio}
            yield row


def cell(figures, digits):
    if not figures:
        return '-'
    return '{median:,.{0}f} ({min:,.{0}f}..{max:,.{0}f})'.format(digits, **figures)


def print_table(rows, out):
    shape = '{:>5}  {:<28} {:>30} {:>32} {:>30} {:>22}'
    print(shape.format('K', '', 'acquire p50, us', 'acquire p99, us', 'pairs/s',
                       'pairs/s to plain'), file=out)
    for row in rows:
        metrics = row['metrics']
        print(shape.format(
            row['at']['K'], row['at']['side'],
            cell(metrics.get('acquire_p50_us'), 1), cell(metrics.get('acquire_p99_us'), 1),
            cell(metrics.get('pairs_per_second'), 0),
            cell(row['ratios'].get('pairs_per_second'), 3)), file=out)


def report_of(asked, masters, sides, skipped, rows):
    about = next(side.about for side in sides if isinstance(side, Ours))
    sentences = [
        'Other lock clients beside ours on the same masters, in rounds that take turns. K loops in '
        'one process acquire and release a resource each, without contention and without pause. '
        'No client retries; bench/RESULTS.md has their settings. Ratios are to our plain protocol, which '
        'asks for what npm redlock asks for; guarded, our default, does more on the server.',
        'redis-py and rueidislock lock one node, which is another job than a majority of '
        f'{len(masters)}: they survive no failure.',
        *(f'Not measured: {what}' for what in skipped),
    ]
    settings = {
        'masters': len(masters),
        'rounds': asked.rounds,
        'seconds_per_round': asked.seconds,
        'warm_up_seconds_of_peers': asked.warm_up,
        'ttl_seconds': asked.ttl,
        **asked.versions,
    }
    return {
        'redlock': about.get('redlock'),
        'machine': about.get('machine', {}),
        'settings': settings,
        'quick': asked.rounds < 5 or asked.seconds < 1,
        'tables': [{
            'id': 'peers',
            'title': 'Other lock clients',
            'note': ' '.join(sentences),
            'axes': ['K', 'side'],
            'rows': rows,
            # Merged with another report, the table keeps its own.
            'settings': settings,
        }],
        'targets': [],
        'failures': asked.failures,
    }
