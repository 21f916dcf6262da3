"""uvicorn with an event loop in each of three threads, which share a log, a lock and a dict.

loops_in_threads.py PORT. Serves from the first command on, and says when that were enough requests.
At the second command it ends, and says what each thread has slept in semaphores: that is known by
the library of sleep_clock.c, which is loaded before and named by SLEEP_CLOCK.
"""

import asyncio
import ctypes
import logging
import os
import socket
import sys
import threading
import time

import uvicorn
from handshake import await_begin, finish, next_command, ready, say

_THREADS = 3
_ANSWERS = 1000
_HELD_S = 0.002

log = logging.getLogger("app")
log.addHandler(logging.FileHandler(os.devnull))
lock = threading.Lock()
answers: "dict[str, int]" = {}


def count(path: "str") -> None:
    """Keep the lock for a while, and the event loop with it, as such code does."""
    with lock:
        time.sleep(_HELD_S)
        answers[path] = answers.get(path, 0) + 1


async def app(scope, _receive, send):
    """Write a line of the log, count under the lock, and answer."""
    if scope["type"] != "http":
        return
    log.warning("asked for %s", scope["path"])
    count(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def main() -> None:
    """Serve until the second command."""
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    config = {"log_config": None, "lifespan": "off", "loop": "asyncio", "http": "h11"}
    servers = [uvicorn.Server(uvicorn.Config(app, **config)) for _ in range(_THREADS)]
    threads = [
        threading.Thread(target=asyncio.run, args=(server.serve(sockets=[listening.dup()]),))
        for server in servers
    ]
    for thread in threads:
        thread.start()
    while not all(server.started for server in servers):
        time.sleep(0.01)
    clock = ctypes.CDLL(os.environ["SLEEP_CLOCK"])
    ready(tids=[thread.native_id for thread in threads])
    await_begin()
    clock.sleep_clock_begin()
    while sum(answers.values()) < _ANSWERS:
        time.sleep(0.01)
    say({"enough": True})
    next_command()
    for server in servers:
        server.should_exit = True
    for thread in threads:
        thread.join()
    slept = {}
    for thread in threads:
        ns, count, woke_ns = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
        said = (ctypes.byref(each) for each in (ns, count, woke_ns))
        clock.sleep_clock(ctypes.c_long(thread.native_id), *said)
        slept[str(thread.native_id)] = {"slept_ns": ns.value, "sleeps": count.value}
    finish({"threads": slept, "answers": sum(answers.values())})


main()
