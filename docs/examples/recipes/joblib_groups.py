"""Groups of a table that pandas sums up in threads of joblib, until standard input ends.

Known answer: `spread` and `summed_up` keep the GIL, with a library's code beneath them.
"""

import sys
import threading

import pandas as pd
from joblib import Parallel, delayed

TABLE = pd.DataFrame({"group": [number % 300 for number in range(6000)], "value": range(6000)})
GOES_ON = threading.Event()


def spread(values):
    return values.max() - values.min()


def summed_up(_):
    return TABLE.groupby("group").value.agg(spread).sum()


def main():
    threading.Thread(target=lambda: (sys.stdin.read(), GOES_ON.set()), daemon=True).start()
    print("ready", flush=True)
    while not GOES_ON.is_set():
        Parallel(n_jobs=4, backend="threading")(delayed(summed_up)(each) for each in range(4))


if __name__ == "__main__":
    main()
