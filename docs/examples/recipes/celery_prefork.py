"""Tasks that celery does in processes, of a broker in the memory of their parent.

Known answer: nobody waits for the GIL; in each child `crunch` has one to itself.
"""

import threading

from celery import Celery
from celery.signals import worker_ready

app = Celery("celery_prefork", broker="memory://")
app.conf.worker_concurrency = 2


@app.task
def crunch():
    value = 0
    for step in range(2_000_000):
        value = (value * 31 + step) % 9973
    return value


@worker_ready.connect
def begin(**_):
    threading.Thread(target=send, daemon=True).start()


def send():
    enough = threading.Event()
    while not enough.wait(0.1):
        crunch.delay()
