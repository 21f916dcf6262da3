"""Prices that FastAPI computes in the thread pool that it has for `def`.

Known answer: `simulate` keeps the GIL, which `price` calls.
"""

from fastapi import FastAPI

app = FastAPI()


def simulate(steps):
    value = 0
    for step in range(steps):
        value = (value * 31 + step) % 9973
    return value


@app.get("/")
def price():
    return {"price": simulate(1_000_000)}
