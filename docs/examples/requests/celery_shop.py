"""Tasks of Celery that log what each run has waited for the GIL.

celery --app celery_shop worker --pool threads --concurrency 2

The broker is a folder, so that nothing else has to run; two tasks are sent once the worker listens.
"""

import json
import tempfile
import threading

from celery import Celery
from celery.signals import worker_ready

from gilscope_client import connect, region

_FOLDER = tempfile.mkdtemp()
app = Celery(
    "shop",
    broker="filesystem://",
    broker_transport_options={"data_folder_in": _FOLDER, "data_folder_out": _FOLDER},
)


def note(r):
    """Say what a run has waited; None where it is not known."""
    print(json.dumps({"task": r.name, "wait_ns": r.wait_ns, "waits": r.waits}), flush=True)


@app.task
@region("add_up", then=note)
def add_up(number):
    return sum(range(1000 * number))


def refresh_prices():
    """Compute for ever, beside the tasks: what they wait for."""
    while True:
        sum(range(10_000))


@worker_ready.connect
def begin(**_):
    threading.Thread(target=refresh_prices, daemon=True).start()
    # Else the first tasks of a worker have no figures.
    connect(timeout_s=30)
    for _ in range(2):
        add_up.delay(2000)
