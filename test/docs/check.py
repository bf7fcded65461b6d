#!/usr/bin/env python3
"""Whether the documents are true: check.py SOURCE_ROOT BUILD_ROOT PROGRAM...

Every block of every page says where it comes from, and that is looked at or run; every link leads
somewhere; every page is in the navigation. CONTRIBUTING.md tells how a page is written. Reports in TAP.
"""

import concurrent.futures
import pathlib
import sys

import commands
from pages import all_pages
import quotes
import runs
import tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from standstill import Witness  # pylint: disable=wrong-import-position

REPORT = tap.Report()
point = REPORT.point


def check_reading(pages, root, build, examples):
    by_path = {page.path.resolve(): page for page in pages}
    compiled = quotes.compiled_files(build, root)
    for page in pages:
        for index, block in enumerate(page.blocks):
            error = quotes.block_error(page, index, root, compiled)
            if block.kind == 'from' or error:
                about = block.origin[1]['path'] if block.kind == 'from' else 'has an origin'
                point(f'{page.name}:{block.line} {about}', error)
        errors = [f'line {line}: {error}' for line, target in page.links
                  if (error := quotes.link_error(page, target, by_path))]
        point(f'{page.name} links', '\n'.join(errors))
        if any(block.kind == 'run' for block in page.blocks):
            point(f'{page.name} programs', '\n'.join(quotes.programs_errors(page, examples)))
    for name, errors in {'navigation': quotes.navigation_errors(root),
                         'metrics of docs/operations.md': quotes.metrics_errors(root),
                         'comments of the headers': quotes.headers_errors(root),
                         'scripts name no host': quotes.hosts_errors(root)}.items():
        point(name, '\n'.join(errors))


def check_commands(pages, tool):
    for page in pages:
        if [*commands.of_blocks(page), *commands.of_prose(page)]:
            point(f'{page.name} commands', '\n'.join(commands.errors(page, tool)))


def check_running(pages, env):
    pages = [page for page in pages if runs.steps(page)]
    alone = runs.isolation()
    if not alone:
        print('# no namespaces here: one page at a time, on the ports of this machine')
    witness = Witness()

    def errors_of(page):
        return witness.again(
            lambda: list(runs.run(page, env, alone)),
            lambda errors: any(error for _, error in errors),
            lambda reason, errors: print(f'{page.name}: {reason}: {errors}', file=sys.stderr, flush=True))

    # They wait more than they compute.
    with concurrent.futures.ThreadPoolExecutor(4 if alone else 1) as pool:
        for page, errors in zip(pages, pool.map(errors_of, pages)):
            for line, error in errors:
                point(f'{page.name}:{line} runs', error)


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    pages = all_pages(root)
    check_reading(pages, root, build, [pathlib.Path(name).name for name in sys.argv[4:]]) # not redlock itself
    check_commands(pages, sys.argv[3])
    check_running(pages, runs.environment(sys.argv[3:], root, build))
    print('# Blocks that are not run:')
    for page in pages:
        for block in page.blocks:
            if block.kind == 'not run':
                print(f'#   {page.name}:{block.line}: {" ".join(block.origin[1]["reason"].split())}')
    REPORT.end()


if __name__ == '__main__':
    main()
