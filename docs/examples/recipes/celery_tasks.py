"""Tasks that celery does in threads, of a broker in memory; they send themselves again.

Known answer: `crunch` keeps the GIL.
"""

from celery import Celery

app = Celery("celery_tasks", broker="memory://")
app.conf.worker_concurrency = 4


@app.task
def crunch():
    value = 0
    for step in range(200_000):
        value = (value * 31 + step) % 9973
    crunch.delay()
    return value


@app.on_after_finalize.connect
def begin(**_):
    for _ in range(8):
        crunch.delay()
