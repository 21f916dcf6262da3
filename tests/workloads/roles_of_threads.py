"""Threads of every make, each of which says by which function it should be known.

Known answer: the line that says `ready` holds the role of each thread by the kernel's id: the
function that it runs for its life, or that of its job where a library runs it. The threads stay
where they are until the next command.
"""

import _thread
import asyncio
import concurrent.futures
import concurrent.futures.thread
import ctypes
import functools
import logging
import logging.handlers
import multiprocessing
import multiprocessing.pool
import os
import queue
import socket
import socketserver
import sys
import threading
import traceback

from handshake import next_command, ready
from old_pythons import native_id

GATE, _ = os.pipe()
ARRIVED = queue.Queue()
STAYING = []
A_LONG_TIME_S = 3600


def role(function):
    """Return the role of a thread that runs that function for its life."""
    code = function.__code__
    name = getattr(code, "co_qualname", code.co_name)
    library = os.path.dirname(os.__file__) + "/"
    path = code.co_filename
    short = path[len(library) :] if path.startswith(library) else os.path.basename(path)
    return "%s (%s:%d)" % (name, short, code.co_firstlineno)


def park(expected):
    """Say as what this thread should be known, and stay."""
    ARRIVED.put((native_id(), expected))
    os.read(GATE, 1)


def plain(*_, **__):
    park(role(plain))


class Service:
    def serve(self):
        park(role(Service.serve))

    def __call__(self):
        park(role(Service.__call__))


class Poller(threading.Thread):
    """Brings its own body, as the threads of anyio's pool do."""

    def run(self):
        park(role(Poller.run))


class Background(threading.Thread):
    """Leaves the body to its subclasses, as celery's background threads do."""

    def run(self):
        self.body()


class Beat(Background):
    def body(self):
        park(role(Background.run))


class Logged(threading.Thread):
    """Does what it was given."""

    def run(self):
        super().run()


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        park(role(Handler.handle))


class Listener(logging.handlers.QueueListener):
    def handle(self, record):  # noqa: ARG002 (as the base class calls it)
        park(role(Listener.handle))


def job():
    park(role(job))


def older_job():
    park(role(older_job))


async def coroutine():
    park("asyncio event loop")


async def run_in_executor():
    """Do what blocks in another thread, as servers with an event loop do."""
    asyncio.get_event_loop().run_in_executor(None, job)
    park(role(run_loop))


def run_loop():
    asyncio.new_event_loop().run_until_complete(run_in_executor())


def called_from_c(_argument):
    park(role(called_from_c))


def start_threads():
    """Start the threads whose makers are Python's own; return how many will arrive."""
    for target in (plain, Service().serve, Service(), functools.partial(plain, 1, two=2), run_loop):
        threading.Thread(target=target, daemon=True).start()
    run = getattr(asyncio, "run", None) or asyncio.new_event_loop().run_until_complete
    threading.Thread(target=run, args=(coroutine(),), daemon=True).start()
    for thread in (Poller(daemon=True), Beat(daemon=True), Logged(target=plain, daemon=True)):
        thread.start()
    threading.Timer(0, plain).start()
    _thread.start_new_thread(plain, ())
    return 5 + 1 + 1 + 3 + 1 + 1


def start_pools():
    """Start threads of pools; return how many will arrive."""
    initial = {} if sys.version_info < (3, 7) else {"initializer": len, "initargs": ([],)}
    pool = concurrent.futures.ThreadPoolExecutor(1, **initial)
    # Other methods start a process that watches over semaphores.
    multiprocessing.set_start_method("fork")
    older = multiprocessing.pool.ThreadPool(1)
    STAYING.extend((pool, older))
    pool.submit(job)
    older.apply_async(older_job)
    return 2


def start_servers():
    """Start threads of servers of the standard library; return how many will arrive."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    STAYING.append(socket.create_connection(server.server_address))
    server.handle_request()
    records = queue.Queue()
    Listener(records).start()
    records.put(logging.makeLogRecord({}))
    return 2


def start_from_c():
    """Start a thread behind Python's back, as a library with threads of its own does."""
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(called_from_c)
    STAYING.append(function)
    thread = ctypes.c_ulong()
    assert ctypes.CDLL(None).pthread_create(ctypes.byref(thread), None, function, None) == 0
    return 1


def start_resting():
    """Start threads that stay in threading's own code; return the role of each by its id."""
    timer = threading.Timer(A_LONG_TIME_S, plain)
    in_c = threading.Thread(target=os.read, args=(GATE, 1), daemon=True)
    timer.daemon = True
    return {
        started(timer): role(threading.Timer.run),
        started(in_c): role(threading.Thread.run),
    }


def started(thread):
    """Start the thread; return its id, which Python itself tells only from 3.8 on."""
    before = set(os.listdir("/proc/self/task"))
    thread.start()
    (tid,) = set(os.listdir("/proc/self/task")) - before
    return int(tid)


def main():
    """Start everybody and say who is who."""
    try:
        arriving = start_threads() + start_pools() + start_servers() + start_from_c()
        roles = dict(ARRIVED.get() for _ in range(arriving))
        ready(roles=roles, resting=start_resting())
        next_command()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        # Python's own way out would wait for the pools.
        os._exit(0)


if __name__ == "__main__":
    main()
