"""A cluster of dask with one worker process of four threads, until standard input ends.

Known answer: `simulate` keeps the GIL, in a process that `multiprocessing` has spawned.
"""

import sys
import threading

from dask.distributed import Client, LocalCluster

GOES_ON = threading.Event()


def simulate(steps):
    value = 0
    for step in range(steps):
        value = (value * 31 + step) % 9973
    return value


def main():
    threading.Thread(target=lambda: (sys.stdin.read(), GOES_ON.set()), daemon=True).start()
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=4, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, Client(cluster) as client:
        print("ready", flush=True)
        while not GOES_ON.is_set():
            client.gather(client.map(simulate, [2_000_000] * 16, pure=False))


if __name__ == "__main__":
    main()
