"""One round of redis-py's `Lock` on one server: K threads in one process, each acquires and releases
a resource of its own without pause. What to do comes as JSON in the only argument, what was measured
leaves as one line of JSON.
"""

import json
import math
import sys
import threading
import time

import redis


class Seen:
    def __init__(self):
        self.acquire_ns = []
        self.pairs = 0
        self.failures = 0
        self.first_failure = ''

    def add(self, other):
        self.acquire_ns += other.acquire_ns
        self.pairs += other.pairs
        self.failures += other.failures
        self.first_failure = self.first_failure or other.first_failure


def loop(client, name, ttl, until, seen):
    while time.monotonic_ns() < until:
        started = time.monotonic_ns()
        try:
            held = client.lock(name, timeout=ttl, blocking=False)
            if not held.acquire():
                raise redis.exceptions.LockError('somebody else has it')
            seen.acquire_ns.append(time.monotonic_ns() - started)
            held.release()
            seen.pairs += 1
        except redis.exceptions.RedisError as error:
            seen.failures += 1
            seen.first_failure = seen.first_failure or str(error)


def run(client, asked, seconds):
    """What was seen, the seconds it took and the processor's."""
    each = [Seen() for _ in range(asked['in_flight'])]
    cpu, started = time.process_time(), time.monotonic_ns()
    until = started + int(seconds * 1e9)
    threads = [
        threading.Thread(
            target=loop, args=(client, f'{asked["prefix"]}{i}', asked['ttl_ms'] / 1000, until, seen)
        )
        for i, seen in enumerate(each)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed, used = (time.monotonic_ns() - started) / 1e9, time.process_time() - cpu
    total = Seen()
    for seen in each:
        total.add(seen)
    return total, elapsed, used


def percentile(ordered, rank):
    """In microseconds; the same rank as in quorum_bench."""
    return ordered[max(math.ceil(rank * len(ordered)), 1) - 1] / 1e3 if ordered else None


def main():
    asked = json.loads(sys.argv[1])
    host, _, port = asked['masters'][0].rpartition(':')
    client = redis.Redis(host=host, port=int(port))
    warm, _, _ = run(client, asked, asked['warm_up'])
    seen, elapsed, cpu = run(client, asked, asked['seconds'])
    ordered = sorted(seen.acquire_ns)
    result = {
        'pairs': seen.pairs,
        'failures': seen.failures + warm.failures,
        'first_failure': seen.first_failure or warm.first_failure,
        'acquire_p50_us': percentile(ordered, 0.5),
        'acquire_p99_us': percentile(ordered, 0.99),
        'pairs_per_second': seen.pairs / elapsed,
        'client_cpu_us_per_pair': cpu * 1e6 / seen.pairs if seen.pairs else None,
    }
    print(json.dumps(result))


if __name__ == '__main__':
    main()
