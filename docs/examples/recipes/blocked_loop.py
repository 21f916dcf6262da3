"""A price that FastAPI computes in the event loop itself, for somebody wrote `async def`.

Known answer: nobody waits for the GIL; `simulate` has it, in the asyncio event loop.
"""

from fast_prices import simulate
from fastapi import FastAPI

app = FastAPI()


@app.get("/")
async def price():
    return {"price": simulate(1_000_000)}
