"""A grid of scikit-learn models that joblib fits in threads, until standard input ends.

Known answer: `fitted` keeps the GIL, with scikit-learn's checks and copies beneath it: the models
are small, so that there is more Python than arithmetic.
"""

import sys
import threading

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

INPUTS = np.random.default_rng(7).normal(size=(200, 4))
OUTPUTS = INPUTS @ np.array([1.0, -2.0, 0.5, 3.0])
GOES_ON = threading.Event()


def fitted(strength):
    model = make_pipeline(StandardScaler(), Ridge(alpha=strength))
    return model.fit(INPUTS, OUTPUTS).score(INPUTS, OUTPUTS)


def main():
    threading.Thread(target=lambda: (sys.stdin.read(), GOES_ON.set()), daemon=True).start()
    print("ready", flush=True)
    strengths = [10.0 ** (power / 100) for power in range(-400, 400)]
    while not GOES_ON.is_set():
        Parallel(n_jobs=4, backend="threading", batch_size=20)(
            delayed(fitted)(each) for each in strengths
        )


if __name__ == "__main__":
    main()
