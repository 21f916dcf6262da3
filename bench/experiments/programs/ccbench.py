"""Throughput and latency as ccbench defines them.

``throughput TASK THREADS SECONDS``: the sum of the iterations by the longest duration, with
sleeps of 0.1 ms between chunks where there is more than one thread.
``latency TASK THREADS PINGS``: another process sends its time 100 ms apart, and the receiving
thread compares it with its own when it has the GIL again: one way. Says its port, and the answer
after a line of stdin. ``ping PORT PINGS CLOCK`` is that other process. Also for Python 2.7.
``books TASK THREADS SECONDS``: threads that never sleep begin together, at a line of stdin. Says
the sum of the times for which each ran or waited, and the longest of them.
"""

import os
import socket
import sys
import threading
import time

from talk import CLOCK, next_line, say
from tasks import TASKS

SECONDS_APART = 0.1
CHUNK_S = 0.01
NOW = getattr(time, "monotonic", time.time)


def compute(task, seconds, several, begin, done):
    begin.wait()
    began_s = CLOCK()
    iterations = 0
    while True:
        chunk_s = CLOCK()
        while CLOCK() - chunk_s < CHUNK_S:
            task()
            iterations += 1
        if CLOCK() - began_s >= seconds:
            break
        if several:
            time.sleep(0.0001)
    done.append((iterations, CLOCK() - began_s))


def throughput(task, threads, seconds):
    begin, done = threading.Event(), []
    workers = [
        threading.Thread(target=compute, args=(task, seconds, threads > 1, begin, done))
        for _ in range(threads)
    ]
    for worker in workers:
        worker.start()
    begin.set()
    for worker in workers:
        worker.join()
    rate = sum(iterations for iterations, _ in done) / max(took_s for _, took_s in done)
    say(iterations_per_s=rate, iterations=sum(iterations for iterations, _ in done))


def books(task, threads, seconds):
    end_s, ended_s = [], []

    def work():
        while CLOCK() < end_s[0]:
            task()
        ended_s.append(CLOCK())

    say(pid=os.getpid())
    next_line()
    workers = [threading.Thread(target=work) for _ in range(threads)]
    began_s = CLOCK()
    end_s.append(began_s + seconds)
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    say(thread_s=sum(ended_s) - threads * began_s, took_s=max(ended_s) - began_s)
    next_line()


def spin(task):
    while True:
        task()


def receive(server, pings, late_s, over):
    for _ in range(pings):
        message, _ = server.recvfrom(100)
        late_s.append(NOW() - float(message.decode("ascii")))
    over.set()


def latency(task, threads, pings):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    late_s, over = [], threading.Event()
    targets = [(spin, (task,))] * threads + [(receive, (server, pings, late_s, over))]
    for target, arguments in targets:
        thread = threading.Thread(target=target, args=arguments)
        thread.daemon = True
        thread.start()
    clock = "monotonic" if hasattr(time, "monotonic") else "time"
    say(pid=os.getpid(), port=server.getsockname()[1], clock=clock)
    next_line()
    if not over.wait(60):
        raise SystemExit("datagrams are missing")
    mean_s = sum(late_s) / len(late_s)
    deviation_s = (sum((each - mean_s) ** 2 for each in late_s) / len(late_s)) ** 0.5
    say(
        pings=len(late_s),
        mean_ms=1000 * mean_s,
        deviation_ms=1000 * deviation_s,
        max_ms=1000 * max(late_s),
    )
    next_line()


def ping(port, pings, clock):
    now = getattr(time, clock)
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(pings):
        time.sleep(SECONDS_APART)
        client.sendto(("%.9f" % now()).encode("ascii"), ("127.0.0.1", port))
    say(sent=pings)


def main():
    what = sys.argv[1]
    if what == "ping":
        ping(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
        return
    task, threads = TASKS[sys.argv[2]], int(sys.argv[3])
    if what == "throughput":
        throughput(task, threads, float(sys.argv[4]))
    elif what == "books":
        books(task, threads, float(sys.argv[4]))
    else:
        latency(task, threads, int(sys.argv[4]))


if __name__ == "__main__":
    main()
