// One round of the npm package `redlock` over `ioredis`: K loops in one process, each acquires and
// releases a resource of its own without pause. What to do comes as JSON in the only argument, what
// was measured leaves as one line of JSON.
'use strict';

const {createRequire} = require('module');
const path = require('path');

const asked = JSON.parse(process.argv[2]);
const peers = createRequire(path.join(asked.modules, 'package.json'));
const Redis = peers('ioredis');
const exported = peers(asked.package);
const Redlock = exported.default || exported;

const milliseconds = asked.ttl_ms;
const ways = {
    redlock: {
        acquire: (locker, name) => locker.lock(name, milliseconds),
        release: (held) => held.unlock(),
    },
    'redlock-beta': {
        acquire: (locker, name) => locker.acquire([name], milliseconds),
        release: (held) => held.release(),
    },
};
const way = ways[asked.package];

async function loop(locker, name, until, seen) {
    while (process.hrtime.bigint() < until) {
        const started = process.hrtime.bigint();
        try {
            const held = await way.acquire(locker, name);
            seen.acquire_ns.push(Number(process.hrtime.bigint() - started));
            await way.release(held);
            ++seen.pairs;
        } catch (error) {
            ++seen.failures;
            seen.first_failure = seen.first_failure || String(error);
        }
    }
}

async function run(locker, seconds) {
    const seen = {acquire_ns: [], pairs: 0, failures: 0, first_failure: ''};
    const cpu = process.cpuUsage();
    const started = process.hrtime.bigint();
    const until = started + BigInt(Math.round(seconds * 1e9));
    const loops = [];
    for (let i = 0; i < asked.in_flight; ++i) {
        loops.push(loop(locker, `${asked.prefix}${i}`, until, seen));
    }
    await Promise.all(loops);
    seen.seconds = Number(process.hrtime.bigint() - started) / 1e9;
    const used = process.cpuUsage(cpu);
    seen.cpu_us = used.user + used.system;
    return seen;
}

// The same rank as in quorum_bench.
function percentile(sorted, rank) {
    return sorted.length ? sorted[Math.max(Math.ceil(rank * sorted.length), 1) - 1] / 1e3 : null;
}

async function main() {
    const clients = asked.masters.map((master) => {
        const [, host, port] = /^(.*):(\d+)$/.exec(master);
        return new Redis({host, port: Number(port), lazyConnect: true});
    });
    await Promise.all(clients.map((client) => client.connect()));
    const locker = new Redlock(clients, {retryCount: 0});
    const warm = await run(locker, asked.warm_up);
    const seen = await run(locker, asked.seconds);
    seen.acquire_ns.sort((a, b) => a - b);
    console.log(JSON.stringify({
        pairs: seen.pairs,
        failures: seen.failures + warm.failures,
        first_failure: seen.first_failure || warm.first_failure,
        acquire_p50_us: percentile(seen.acquire_ns, 0.5),
        acquire_p99_us: percentile(seen.acquire_ns, 0.99),
        pairs_per_second: seen.pairs / seen.seconds,
        client_cpu_us_per_pair: seen.pairs ? seen.cpu_us / seen.pairs : null,
    }));
    clients.forEach((client) => client.disconnect());
}

main().catch((error) => {
    console.error(String(error));
    process.exit(1);
});
