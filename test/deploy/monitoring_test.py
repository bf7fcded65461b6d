#!/usr/bin/env python3
"""Alerts, dashboard and runbooks against what is really exported: monitoring_test.py REDLOCK ROOT EXAMPLES [CASE...]

What is exported is read from `redlock metrics` and from examples/prometheus_endpoint, which takes a
lock, under real masters. promtool, of the package prometheus, tests the rules where it is installed.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv.pop(2)).resolve()
EXAMPLES = pathlib.Path(sys.argv.pop(2)).resolve()
sys.path.insert(0, str(ROOT / 'test' / 'cli'))

from harness import Quorum, Skip, case, ended, equal, main  # noqa: E402

RULES = ROOT / 'deploy' / 'prometheus' / 'redlock.rules.yml'
RULE_TESTS = ROOT / 'deploy' / 'prometheus' / 'redlock.rules.test.yml'
DASHBOARD = ROOT / 'deploy' / 'grafana' / 'redlock.json'
RUNBOOKS = ROOT / 'docs' / 'operations' / 'runbooks.md'

# Of the values of a label, those which any series may have and these masters have not.
OPEN_LABELS = {'quorum', 'master', 'version', 'run_id', 'key_prefix', 'protocol', 'compare_and_delete', 'le'}
# Prometheus' own.
SCRAPED = {'instance', 'job'}


def rules():
    """Of each alert: its name, its expression and its runbook. Read without a YAML library, which
    no package of the tests brings; promtool reads the file as a whole."""
    found = []
    for part in RULES.read_text().split('- alert: ')[1:]:
        name = part.split('\n', 1)[0]
        lines = part.split('\n')
        at = next(number for number, line in enumerate(lines) if line.lstrip().startswith('expr:'))
        indent = len(lines[at]) - len(lines[at].lstrip())
        expression = [lines[at].split('expr:', 1)[1].strip().removeprefix('>')]
        for line in lines[at + 1:]:
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            expression.append(line.strip())
        runbook = re.search(r'^ +runbook: (\S+)$', part, re.MULTILINE)
        severity = re.search(r'^ +severity: (\w+)$', part, re.MULTILINE)
        found.append((name, ' '.join(expression).strip(), runbook and runbook[1], severity and severity[1]))
    return found


def dashboard_queries():
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard['panels']:
        for target in panel.get('targets', ()):
            yield panel['title'], target['expr']
    for annotation in dashboard['annotations']['list']:
        yield annotation['name'], annotation['expr']


def series_of(page):
    """Family (with _bucket and the like) to a list of its label sets."""
    out = {}
    for line in page.splitlines():
        match = re.fullmatch(r'(\w+)(?:\{(.*)\})? \S+', line)
        if match and not line.startswith('#'):
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ''))
            out.setdefault(match[1], []).append(labels)
    return out


@functools.cache
def exported():
    """Of both exporters, which must export the same."""
    with Quorum(3) as quorum:
        # First, as it has a quarantine: one of 2 s, but the tool records a longer one.
        example = subprocess.run(
            [EXAMPLES / 'prometheus_endpoint', '--check', *(master.url for master in quorum.masters)],
            capture_output=True, text=True, check=True, timeout=60)
        by_example = series_of(example.stdout)
        by_tool = series_of(ended(quorum.run('metrics'), 0).stdout)
    assert by_tool, 'redlock metrics exports nothing'
    equal(set(by_tool), set(by_example))
    return by_tool


def check_query(where, query):
    """Every metric with its labels, and the values of labels that are written out."""
    known = exported()
    selectors = re.findall(r'\b(redlock_\w+)\s*(?:\{([^}]*)\})?', query)
    assert selectors, f'{where}: no metric in {query}'
    all_labels = set(SCRAPED) | set(re.findall(r'count_values[^"]*"(\w+)"', query))
    for name, matchers in selectors:
        assert name in known, f'{where}: {name} is not exported'
        labels = set().union(*known[name])
        all_labels |= labels
        for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', matchers):
            assert label in labels, f'{where}: {name} has no label {label}, but {sorted(labels)}'
            if label not in OPEN_LABELS and '$' not in value:
                values = {one[label] for one in known[name]}
                for wanted in value.split('|') if operator.endswith('~') else [value]:
                    assert wanted in values, f'{where}: {name} never has {label}="{wanted}", but {sorted(values)}'
    for grouping in re.findall(r'\b(?:by|on|without|ignoring)\s*\(([^)]*)\)', query):
        for label in filter(None, re.split(r'[,\s]+', grouping)):
            assert label in all_labels, f'{where}: nothing there has the label {label}'


def headings(text):
    return re.findall(r'^## (\S+)$', text, re.MULTILINE)


@case('every metric and label of the alerts is exported')
def _():
    assert len(rules()) > 10
    for name, query, _, severity in rules():
        check_query(name, query)
        assert severity in ('critical', 'warning', 'info'), f'{name} has severity {severity}'


@case('every metric and label of the dashboard is exported')
def _():
    queries = list(dashboard_queries())
    assert len(queries) > 10
    for title, query in queries:
        check_query(title, query)


@case('a query with a wrong metric, label or value is found')
def _():
    for query in ('redlock_readiness', 'redlock_ready{master="a"}', 'redlock_losses_total{reason="gone"}',
                  'redlock_losses_total{reason=~"expired|gone"}', 'sum by (outcome) (redlock_ready)'):
        try:
            check_query('wrong', query)
        except AssertionError:
            continue
        raise AssertionError(f'{query} passed')


@case('every alert has a section in the runbooks, in the same order, and its link leads there')
def _():
    equal(headings(RUNBOOKS.read_text()), [name for name, *_ in rules()])
    for name, _, runbook, _ in rules():
        equal(runbook, f'docs/operations/runbooks.md#{name.lower()}')


@case('every section of the runbooks answers the same questions')
def _():
    for section in re.split(r'^## ', RUNBOOKS.read_text(), flags=re.MULTILINE)[1:]:
        name = section.split('\n', 1)[0]
        for question in ('**Means**', '**Users**', '**Look**', '**Do**', '**Over**'):
            assert section.count(question) == 1, f'{name} does not say {question} once'


@case('panels of the dashboard have numbers of their own and do not overlap')
def _():
    panels = json.loads(DASHBOARD.read_text())['panels']
    equal(len({panel['id'] for panel in panels}), len(panels))
    taken = set()
    for panel in panels:
        at = panel['gridPos']
        assert at['x'] + at['w'] <= 24, panel['title']
        cells = {(at['x'] + dx, at['y'] + dy) for dx in range(at['w']) for dy in range(at['h'])}
        assert not cells & taken, f'{panel["title"]} lies over another panel'
        taken |= cells


@case('a panel that shows what an alert goes by names it, and no other names are there')
def _():
    panels = json.loads(DASHBOARD.read_text())['panels']
    shown = [(' '.join(target['expr'] for target in panel.get('targets', ())), panel.get('description', ''))
             for panel in panels]
    named = set(re.findall(r'Redlock\w+', ' '.join(description for _, description in shown)))
    assert named <= {name for name, *_ in rules()}, named
    for name, expression, *_ in rules():
        metrics = set(re.findall(r'redlock_\w+', expression))
        about = [description for queries, description in shown if metrics & set(re.findall(r'redlock_\w+', queries))]
        assert not about or any(name in description for description in about), f'{name}: {about}'


@case('every alert fires in a test of the rules')
def _():
    fired = set(re.findall(r'alertname="(\w+)"[^}]*\}\', value', RULE_TESTS.read_text()))
    equal(fired, {name for name, *_ in rules()})


def promtool(*words):
    program = os.environ.get('PROMTOOL') or shutil.which('promtool')
    if not program:
        raise Skip('promtool is not installed (Debian: prometheus)')
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@case('promtool: the rules are well-formed and fire when they should')
def _():
    promtool('check', 'config', RULES.with_name('prometheus.yml'))
    promtool('check', 'rules', RULES)
    promtool('test', 'rules', RULE_TESTS)


@case('promtool: the queries of the dashboard are well-formed')
def _():
    groups = {'groups': [{'name': 'dashboard', 'rules': [
        {'record': f'panel:{number}', 'expr': re.sub(r'\$__\w+', '5m', query)}
        for number, (_, query) in enumerate(dashboard_queries())]}]}
    with tempfile.NamedTemporaryFile('w', suffix='.yml') as file:
        json.dump(groups, file)  # which is YAML as well
        file.flush()
        promtool('check', 'rules', file.name)


if __name__ == '__main__':
    main()
