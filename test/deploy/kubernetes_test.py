#!/usr/bin/env python3
"""deploy/kubernetes: real servers with the very configuration of the manifests, and the manifests' structure:
kubernetes_test.py REDLOCK ROOT [CASE...]

There is no cluster here: what one would do with the manifests is not shown. kubectl makes them of the
kustomizations where it is installed, and python3-yaml reads them.
"""

import contextlib
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(sys.argv.pop(2)).resolve()
sys.path.insert(0, str(ROOT / 'test' / 'cli'))

from harness import (  # noqa: E402
    Master, Quorum, ServerError, Skip, case, contains, ended, equal, listed, main, until)

MASTERS = 5
DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always']


def manifests(quorum):
    """A copy with secrets in it, as an operator has it."""
    copy = quorum.path('kubernetes')
    if not copy.exists():
        shutil.copytree(ROOT / 'deploy' / 'kubernetes', copy)
        subprocess.run([copy / 'base' / 'make-secrets'], check=True)
    return copy


def password(quorum, user):
    return (manifests(quorum) / 'base' / f'{user}.password').read_text()


class ConfiguredMaster(Master):
    """With the file of the manifests, but for what two servers of one machine cannot share."""

    def command(self):
        directory = pathlib.Path(self.directory) / str(self.port)
        directory.mkdir(exist_ok=True)
        base = pathlib.Path(self.directory) / 'kubernetes' / 'base'
        return [self.program, base / 'redis.conf', '--port', str(self.port), '--aclfile', base / 'users.acl',
                '--dir', str(directory), *self.options]


@contextlib.contextmanager
def deployment(*options):
    with Quorum(0) as quorum:
        manifests(quorum)
        for _ in range(MASTERS):
            quorum.masters.append(ConfiguredMaster(str(quorum.directory), options))
            quorum.stack.callback(quorum.masters[-1].kill)
        quorum.env.pop('REDLOCK_NO_QUARANTINE')
        quorum.env |= listed(*quorum.masters) | {
            'REDLOCK_USERNAME': 'locker',
            'REDLOCK_PASSWORD_FILE': str(manifests(quorum) / 'base' / 'locker.password'),
            # Shorter than in the manifests, for the quarantine that is waited out.
            'REDLOCK_MAX_TTL': '1s', 'REDLOCK_TTL': '900ms', 'REDLOCK_CLOCK_OFFSET_BOUND': '50ms'}
        yield quorum


def examine(quorum):
    return json.loads(quorum.run('doctor', '--json', '--clock-time', '20ms').stdout)


def wait_until_well(quorum):
    ended(quorum.run('run', 'warm-up', '--', 'true'), 0)
    until(lambda: examine(quorum)['admitted'] == MASTERS, 'the end of the quarantine')


@case('five servers with redis.conf and users.acl make a quorum that doctor finds well')
def _():
    with deployment() as quorum:
        wait_until_well(quorum)
        report = examine(quorum)
        equal((report['verdict'], [one for one in report['findings'] if one['severity'] != 'note']), ('healthy', []))
        result = quorum.run('run', '--fencing', 'worker', '--', 'sh', '-c', 'echo works')
        equal(ended(result, 0).stdout, 'works\n')


@case('the users may do what they are for, and no more')
def _():
    with deployment() as quorum:
        master = quorum.masters[0]
        equal(master.ask('PING'), 'PONG')
        for user, words, allowed in (
                (None, ('GET', 'redlock:{a}'), False), (None, ('INFO',), False),
                ('locker', ('GET', 'redlock:{a}'), True), ('locker', ('GET', 'other'), False),
                ('locker', ('FLUSHALL',), False), ('locker', ('CONFIG', 'SET', 'maxmemory', '0'), False),
                ('locker', ('EVAL', "return redis.call('KEYS', '*')", '0'), False),
                ('operator', ('ACL', 'LOG'), True), ('operator', ('GET', 'redlock::epoch'), True)):
            try:
                master.ask(*words, login=user and (user, password(quorum, user)))
                passed = True
            except ServerError as error:
                # In a script Redis 7.0 calls it "can't run this command", and 8 "has no permissions to run".
                assert any(words in str(error) for words in ('NOPERM', "can't run", 'no permissions')), error
                passed = False
            equal(passed, allowed, f'{user} says {words}')


@case('a master of the base that restarts waits out its quarantine')
def _():
    with deployment() as quorum:
        wait_until_well(quorum)
        quorum.env['REDLOCK_MAX_TTL'] = '20s'
        quorum.masters[0].restart()
        until(lambda: examine(quorum)['admitted'] == MASTERS - 1, 'the quarantine')
        contains(json.dumps(examine(quorum)), 'does not vote for')


@case('a master of the overlay `durable` that restarts keeps its locks')
def _():
    with deployment(*DURABLE) as quorum:
        wait_until_well(quorum)
        quorum.holder('a')
        master = quorum.masters[0]

        def owner():
            with contextlib.suppress(OSError, ServerError):
                return master.ask('GET', 'redlock:{a}', login=('operator', password(quorum, 'operator')))

        until(owner, 'the vote of the first master')
        token = owner()
        master.restart()
        until(owner, 'the restarted master')
        equal(owner(), token)


def built(quorum, which):
    """Kind and name to object."""
    try:
        import yaml
    except ImportError as error:
        raise Skip('python3-yaml is not installed') from error
    if not shutil.which('kubectl'):
        raise Skip('kubectl is not installed')
    done = subprocess.run(['kubectl', 'kustomize', manifests(quorum) / which], capture_output=True, text=True,
                          check=True)
    return {(one['kind'], one['metadata']['name']): one for one in yaml.safe_load_all(done.stdout)}


def masters_of(objects):
    pods = objects['StatefulSet', 'redlock-masters']['spec']['template']['spec']
    return pods, pods['containers'][0]


@case('the manifests are those of five masters, and what the worker is told are their names')
def _():
    for which in ('base', 'durable'):
        with Quorum(0) as quorum:
            objects = built(quorum, which)
            masters = objects['StatefulSet', 'redlock-masters']['spec']
            service = objects['Service', masters['serviceName']]['spec']
            equal((masters['replicas'], service['clusterIP'], service['publishNotReadyAddresses']),
                  (MASTERS, 'None', True))
            equal(service['selector'], masters['template']['metadata']['labels'])
            equal(objects['PodDisruptionBudget', 'redlock-masters']['spec']['maxUnavailable'], 1)
            names = [f'redis://redlock-masters-{number}.redlock-masters.locks.svc' for number in range(MASTERS)]
            worker = objects['Deployment', 'worker']['spec']['template']
            env = {one['name']: one['value'] for one in worker['spec']['containers'][0]['env']}
            equal(env['REDLOCK_MASTERS'].split(','), names)
            policy = objects['NetworkPolicy', 'redlock-masters']['spec']['ingress'][0]['from'][0]
            assert policy['podSelector']['matchLabels'].items() <= worker['metadata']['labels'].items()


@case('no two masters share a node', 0)
def _(quorum):
    objects = built(quorum, 'base')
    pods, _ = masters_of(objects)
    rules = pods['affinity']['podAntiAffinity']['requiredDuringSchedulingIgnoredDuringExecution']
    equal([(one['topologyKey'], one['labelSelector']['matchLabels']) for one in rules],
          [('kubernetes.io/hostname', {'app.kubernetes.io/name': 'redlock-masters'})])


@case('a master is ready no sooner than its quarantine is over', 0)
def _(quorum):
    objects = built(quorum, 'base')
    worker = objects['Deployment', 'worker']['spec']['template']['spec']['containers'][0]
    max_ttl = next(one['value'] for one in worker['env'] if one['name'] == 'REDLOCK_MAX_TTL')
    lease = json.loads(ended(quorum.run('size', '--json', '--max-ttl', max_ttl), 0).stdout)['lease']
    _, container = masters_of(objects)
    assert container['readinessProbe']['initialDelaySeconds'] * 1000 >= lease['quarantine_ms'], lease


@case('what the manifests start and mount is what is tested here', 0)
def _(quorum):
    base, durable = built(quorum, 'base'), built(quorum, 'durable')
    command = ['redis-server', '/etc/redlock/redis.conf']
    equal(masters_of(base)[1]['command'], command)
    equal(masters_of(durable)[1]['command'], command + DURABLE)
    configuration = next(one for (kind, _), one in base.items() if kind == 'ConfigMap')
    equal(configuration['data']['redis.conf'], (manifests(quorum) / 'base' / 'redis.conf').read_text())
    pods, container = masters_of(base)
    mounted = {source[kind]['name'] for source in pods['volumes'][0]['projected']['sources'] for kind in source}
    equal(mounted, {configuration['metadata']['name'],
                    next(name for kind, name in base if kind == 'Secret' and 'users' in name)})
    equal({one['name']: one['mountPath'] for one in container['volumeMounts']},
          {'config': '/etc/redlock', 'data': '/data'})
    assert {'name': 'data', 'emptyDir': {}} in pods['volumes']
    claims = durable['StatefulSet', 'redlock-masters']['spec']['volumeClaimTemplates']
    equal([one['metadata']['name'] for one in claims], ['data'])
    assert all(one['name'] != 'data' for one in masters_of(durable)[0]['volumes'])


if __name__ == '__main__':
    main()
