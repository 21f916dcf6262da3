"""Prices that Flask computes in gunicorn's threads.

Known answer: `price` keeps the GIL.
"""

from flask import Flask

app = Flask(__name__)


@app.get("/")
def price():
    value = 0
    for step in range(1_000_000):
        value = (value * 31 + step) % 9973
    return {"price": value}
