"""What the asyncio of Python 3.6 lacks and workloads need."""

import asyncio

__all__ = ["run_coroutine"]


def _run_coroutine(coroutine: object) -> object:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


run_coroutine = getattr(asyncio, "run", _run_coroutine)
