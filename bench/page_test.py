#!/usr/bin/env python3
"""The page of a report is well-formed, holds the report unchanged, and asks the network for nothing:
page_test.py QUORUM_BENCH
"""

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile

VOID = {'meta', 'link', 'br', 'img', 'input', 'hr'}
# What would end the element, or hide its end, if it stood there as it is.
HOSTILE = '</script><script>alert(1)</script> <!-- <script> ]]> & \u2028 "\\" é \U0001f512'

SPREAD = {'median': 2, 'min': 1, 'max': 3, 'rounds': [1, 2, 3]}
REPORT = {
    'redlock': '0.9.0',
    'machine': {'cpu': HOSTILE, 'servers': ['redis', 'redis']},
    'settings': {'masters': 5},
    'quick': True,
    'failures': [],
    'tables': [{
        'id': 'throughput', 'title': HOSTILE, 'note': '', 'axes': ['K', 'side'],
        'rows': [{'at': {'K': 1, 'side': HOSTILE}, 'metrics': {HOSTILE: SPREAD}, 'ratios': {}}],
    }],
    'targets': [{'what': HOSTILE, 'target': '<= 1.15 x floor', 'measured': 1.1, 'reached': True}],
}
PEERS = {
    'tables': [{'id': 'peers', 'title': 'peers', 'axes': [], 'rows': []}],
    'targets': [],
    'failures': [HOSTILE],
}


class Page(html.parser.HTMLParser):
    """Fails at a tag without its other half; keeps the text of scripts and all attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.scripts, self.attributes, self.ids = [], {}, [], []
        self.feed(text)
        self.close()
        assert self.open == [], f'not closed: {self.open}'
        assert len(self.ids) == len(set(self.ids)), f'an id twice: {self.ids}'

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value or '') for name, value in attrs]
        self.ids += [value for name, value in attrs if name == 'id']
        if tag not in VOID:
            self.open.append(tag)
        if tag == 'script':
            self.script = dict(attrs).get('type', 'text/javascript')
            assert self.script not in self.scripts, f'a second script of {self.script}'
            self.scripts[self.script] = ''

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f'</{tag}> in {self.open}'
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == 'script':
            self.scripts[self.script] += data


def page_of(program, *reports):
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for report in reports:
            files.append(pathlib.Path(directory) / f'{len(files)}.json')
            files[-1].write_text(json.dumps(report))
        page = pathlib.Path(directory) / 'page.html'
        subprocess.run([program, '--page', *map(str, files), '--html', str(page)], check=True)
        return page.read_text()


def refused(program, text):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / 'report.json'
        file.write_text(text)
        words = [program, '--page', str(file), '--html', '-']
        done = subprocess.run(words, capture_output=True, text=True)
        return done.returncode == 2 and 'is not a report' in done.stderr and done.stdout == ''


def main():
    program = sys.argv[1]
    text = page_of(program, REPORT)
    page = Page(text)
    assert json.loads(page.scripts['application/json']) == REPORT
    assert 'report();' in page.scripts['text/javascript']
    assert '<!-- style -->' not in text and '<!-- data -->' not in text

    # Nothing is fetched: no address but the names of XML, and no attribute that loads something.
    assert set(re.findall(r'https?://[^\s"\')]*', text)) == {'http://www.w3.org/2000/svg'}
    loading = [it for it in page.attributes if it[1] in ('src', 'href') and it[2][:1] != '#']
    assert loading == [('link', 'href', 'data:,')], loading
    assert not re.search(r'@import|url\(', text)

    both = json.loads(Page(page_of(program, REPORT, PEERS)).scripts['application/json'])
    assert [table['id'] for table in both['tables']] == ['throughput', 'peers']
    assert both['failures'] == [HOSTILE] and both['quick'] is True
    assert both['targets'] == REPORT['targets'] and both['machine'] == REPORT['machine']

    assert refused(program, '{"tables": 1}') and refused(program, '[]') and refused(program, '{')


if __name__ == '__main__':
    main()
