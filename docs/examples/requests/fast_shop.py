"""A shop in FastAPI that tells what each request has waited for the GIL, by route.

uvicorn fast_shop:app
"""

import asyncio
import threading

import prometheus_client
from fastapi import FastAPI, Response

from gilscope_client.asgi import Middleware

app = FastAPI()
app.add_middleware(Middleware)


@app.get("/cart/{number}")
async def cart(number: int):
    # While it sleeps others have the loop, and their waits are theirs.
    await asyncio.sleep(0.001)
    return sum(range(1000 * number))


@app.get("/metrics")
async def metrics():
    return Response(prometheus_client.generate_latest(), media_type="text/plain")


def refresh_prices():
    """Compute for ever, beside the requests: what they wait for."""
    while True:
        sum(range(10_000))


threading.Thread(target=refresh_prices, daemon=True).start()
