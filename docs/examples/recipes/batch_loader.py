"""A training loop with the shape of PyTorch's DataLoader, until standard input ends.

Worker processes make batches, a thread beside the loop takes them from these and copies them, as
that of `pin_memory` does, and the loop trains.

Known answer: `train` keeps the GIL, and `pin_batches` waits for it.
"""

import multiprocessing
import queue
import sys
import threading

GOES_ON = threading.Event()


def make_batches(batches):
    while True:
        batches.put([float(number) for number in range(2_000)])


def pin_batches(batches, pinned):
    while not GOES_ON.is_set():
        pinned.put(list(batches.get()))


def train(pinned):
    loss = 0
    while not GOES_ON.is_set():
        batch = pinned.get()
        for step in range(100_000):
            loss = (loss * 31 + step + batch[0]) % 9973
    return loss


def main():
    batches, pinned = multiprocessing.Queue(8), queue.Queue(2)
    workers = [
        multiprocessing.Process(target=make_batches, args=(batches,), daemon=True) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    threading.Thread(target=lambda: (sys.stdin.read(), GOES_ON.set()), daemon=True).start()
    threading.Thread(target=pin_batches, args=(batches, pinned), daemon=True).start()
    print("ready", flush=True)
    train(pinned)


if __name__ == "__main__":
    main()
