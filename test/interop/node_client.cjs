// The npm package `redlock` over `ioredis`, told what to do by lines: see client.py for their form.
//
//     node node_client.cjs NODE_MODULES HOST:PORT...
'use strict';

const {createRequire} = require('module');
const fs = require('fs');
const path = require('path');
const readline = require('readline');

const [modules, ...masters] = process.argv.slice(2);
const installed = createRequire(path.join(modules, 'package.json'));
const Redis = installed('ioredis');
const {default: Redlock} = installed('redlock');

const clients = masters.map((master) => {
    const [, host, port] = /^(.*):(\d+)$/.exec(master);
    const client = new Redis({host, port: Number(port), maxRetriesPerRequest: 0});
    client.on('error', () => {}); // a master may be down: that is for the quorum to say
    return client;
});
// One attempt: the lines say whether to wait, and for how long.
const locker = new Redlock(clients, {retryCount: 0});
const held = new Map();

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function acquire(key, ttl) {
    held.set(key, await locker.acquire([key], Number(ttl)));
    return held.get(key).value;
}

async function extend(key, ttl) {
    held.set(key, await held.get(key).extend(Number(ttl)));
    return '';
}

async function release(key) {
    await held.get(key).release();
    return '';
}

function pass(directory) {
    const inside = path.join(directory, 'inside');
    const counter = path.join(directory, 'counter');
    try {
        fs.closeSync(fs.openSync(inside, 'wx'));
    } catch (error) {
        fs.appendFileSync(path.join(directory, 'overlaps'), 'npm redlock\n');
        return;
    }
    fs.writeFileSync(counter, String(Number(fs.readFileSync(counter)) + 1));
    fs.unlinkSync(inside);
}

async function contend(key, ttl, rounds, directory) {
    for (let done = 0; done < Number(rounds);) {
        let mine;
        try {
            mine = await locker.acquire([key], Number(ttl));
        } catch (error) {
            await pause(Math.random() * 20);
            continue;
        }
        if (mine.expiration - Date.now() > Number(ttl) / 2) {
            pass(directory);
            ++done;
        }
        await mine.release().catch(() => {}); // a vote may have expired: no harm
        await pause(Math.random() * 5); // lets the others in
    }
    return '';
}

const orders = {acquire, extend, release, contend};

async function main() {
    for await (const line of readline.createInterface({input: process.stdin})) {
        const [order, ...words] = line.split(' ');
        try {
            console.log(`yes ${await orders[order](...words)}`);
        } catch (error) {
            console.log(`no ${String(error).replace(/\n/g, ' ')}`);
        }
    }
    clients.forEach((client) => client.disconnect());
}

main();
