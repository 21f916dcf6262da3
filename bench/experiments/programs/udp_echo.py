"""A thread that echoes datagrams beside threads that compute: the convoy, with its variants.

Known answer: with nothing beside it the echo thread never waits for the GIL. Beside one thread it
wants the GIL back after each call, two times an echo.

Arguments: how many threads compute, and the arm (see `ARMS`), and the switch interval in ms or 0.
Says its port, and on each line of stdin how many tasks were computed. Also for Python 2.7.
"""

import multiprocessing
import os
import socket
import sys
import threading
import time

from talk import next_line, say
from tasks import pidigits

ARMS = ("none", "nice_echo", "nice_spin", "rr_echo", "process", "interpreter")
LARGEST = 16384
COUNTS = []


def spin(number, arm):
    if arm == "nice_spin":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    while True:
        pidigits()
        COUNTS[number] += 1


def echo_server(server, arm):
    if arm == "nice_echo":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
    elif arm == "rr_echo":
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    while True:
        message, address = server.recvfrom(LARGEST)
        server.sendto(message, address)


def spin_alone(parent):
    """Compute in another process until the parent is gone."""
    while os.getppid() == parent:
        pidigits()


def spin_in_interpreter(folder):
    """Compute under a GIL of its own."""
    import _interpreters

    one = _interpreters.create()
    code = "import sys; sys.path.insert(0, %r); import tasks\nwhile True: tasks.pidigits()" % folder
    _interpreters.run_string(one, code)


def start(target, *arguments):
    thread = threading.Thread(target=target, args=arguments)
    thread.daemon = True
    thread.start()


def main():
    threads, arm, interval_ms = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    if interval_ms:
        sys.setswitchinterval(interval_ms / 1000)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    COUNTS.extend([0] * threads)
    for number in range(threads):
        if arm == "process":
            child = multiprocessing.Process(target=spin_alone, args=(os.getpid(),))
            child.daemon = True
            child.start()
        elif arm == "interpreter":
            start(spin_in_interpreter, os.path.dirname(os.path.abspath(__file__)))
        else:
            start(spin, number, arm)
    start(echo_server, server, arm)
    say(port=server.getsockname()[1], pid=os.getpid())
    while next_line():
        say(tasks=sum(COUNTS), at_s=time.time())


if __name__ == "__main__":
    main()
