"""redis-py's `Lock`, on the one server it knows, told what to do by lines: see client.py for their form.

    python_client.py HOST:PORT
"""

import os
import pathlib
import random
import sys
import time

import redis

host, _, port = sys.argv[1].rpartition(':')
server = redis.Redis(host=host, port=int(port))
held = {}


def acquire(key, ttl):
    lock = server.lock(key, timeout=int(ttl) / 1000, blocking=False)
    if not lock.acquire():
        raise redis.exceptions.LockError('somebody else has it')
    held[key] = lock
    return lock.local.token.decode()


def extend(key, ttl):
    held[key].extend(int(ttl) / 1000, replace_ttl=True)
    return ''


def release(key):
    held[key].release()
    return ''


def enter(directory):
    try:
        os.close(os.open(directory / 'inside', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        with open(directory / 'overlaps', 'a', encoding='ascii') as overlaps:
            overlaps.write('redis-py\n')
        return
    counter = directory / 'counter'
    counter.write_text(str(int(counter.read_text()) + 1))
    (directory / 'inside').unlink()


def contend(key, ttl, rounds, directory):
    done = 0
    while done < int(rounds):
        lock = server.lock(key, timeout=int(ttl) / 1000, blocking=False)
        begin = time.monotonic()
        if not lock.acquire():
            time.sleep(random.uniform(0, 0.02))
            continue
        if time.monotonic() - begin < int(ttl) / 2000:
            enter(pathlib.Path(directory))
            done += 1
        try:
            lock.release()
        except redis.exceptions.LockError:
            pass  # it had expired
        time.sleep(random.uniform(0, 0.005))  # lets the others in
    return ''


ORDERS = {'acquire': acquire, 'extend': extend, 'release': release, 'contend': contend}


def main():
    for line in sys.stdin:
        order, *words = line.split()
        try:
            print('yes', ORDERS[order](*words), flush=True)
        except redis.exceptions.RedisError as error:
            print('no', repr(error).replace('\n', ' '), flush=True)


if __name__ == '__main__':
    main()
