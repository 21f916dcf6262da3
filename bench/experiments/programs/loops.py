"""Event loops, each in a thread of its own, that answer requests and count them in a dict.

``loops.py DICT LOOPS SECONDS``: DICT is `own` (each loop has one) or `shared` (all write to the
same, each to keys of its own). Each loop has clients and server at both ends of socket pairs:
what is measured needs no other process. At the first line they begin; says how many requests.
"""

import asyncio
import json
import os
import socket
import sys
import threading

from talk import CLOCK, next_line, say

CONNECTIONS = 8
KEYS = 64
REQUEST = b"GET /json\n"
ROWS = [{"number": number, "name": "row %d" % number} for number in range(8)]


class Server(asyncio.Protocol):
    """Answers each line with some JSON, and counts it."""

    def __init__(self, counts, loop_number):
        self.counts = counts
        self.keys = [(loop_number, key) for key in range(KEYS)]
        self.next = 0

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        for _ in range(data.count(b"\n")):
            key = self.keys[self.next % KEYS]
            self.next += 1
            self.counts[key] = self.counts.get(key, 0) + 1
            body = json.dumps(ROWS).encode()
            self.transport.write(b"%d\n%s\n" % (len(body), body))


class Client(asyncio.Protocol):
    """Asks again when it has its answer, until time is over."""

    def __init__(self, end_s, done):
        self.end_s, self.done, self.answers = end_s, done, 0

    def connection_made(self, transport):
        self.transport = transport
        transport.write(REQUEST)

    def data_received(self, data):
        # An answer is two lines; it is short enough to come whole.
        if not data.endswith(b"]\n"):
            return
        self.answers += 1
        if CLOCK() < self.end_s:
            self.transport.write(REQUEST)
        else:
            self.done.set_result(self.answers)


async def serve(counts, number, seconds):
    """Return how many answers the clients of this loop got."""
    loop, answered, ends = asyncio.get_running_loop(), [], []
    end_s = CLOCK() + seconds
    for _ in range(CONNECTIONS):
        here, there = socket.socketpair()
        done = loop.create_future()
        transport, _ = await loop.create_connection(lambda: Server(counts, number), sock=here)
        ends.append(transport)
        transport, _ = await loop.create_connection(
            lambda done=done: Client(end_s, done), sock=there
        )
        ends.append(transport)
        answered.append(done)
    answers = sum([await each for each in answered])
    for transport in ends:
        transport.close()
    return answers


def main():
    kind, loops, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    shared = {}
    dicts = [shared if kind == "shared" else {} for _ in range(loops)]
    answers = []

    def event_loop(number):
        answers.append(asyncio.run(serve(dicts[number], number, seconds)))

    say(pid=os.getpid(), has_gil=getattr(sys, "_is_gil_enabled", lambda: True)())
    next_line()
    threads = [threading.Thread(target=event_loop, args=(number,)) for number in range(loops)]
    began_s = CLOCK()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = CLOCK() - began_s
    counted = sum(sum(each.values()) for each in ([shared] if kind == "shared" else dicts))
    say(answers=sum(answers), counted=counted, took_s=took_s, requests_per_s=sum(answers) / took_s)
    next_line()


if __name__ == "__main__":
    main()
