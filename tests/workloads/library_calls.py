"""Threads of an application whose work is all done in the standard library, in Python.

One line is the application's own. What is below it belongs to `json`: several functions and many
lines, so that no pair of innermost places stands for much.
"""

import json
import threading

from handshake import next_command, ready

ORDERS = [
    {"id": number, "lines": [{"sku": str(sku), "count": sku} for sku in range(8)]}
    for number in range(40)
]


def render() -> str:
    return json.dumps(ORDERS, indent=1)


def serve() -> None:
    while True:
        render()


for _ in range(3):
    threading.Thread(target=serve, daemon=True).start()
ready()
while next_command() is not None:
    pass
