"""What programs export themselves that use the middleware of gilscope-client.

They are in the registry of the application, and scraped from there: the agent does not export them.
"""

from gilscope.metrics.family import Family

__all__ = ["CLIENT_FAMILIES", "REQUEST_GIL_WAIT", "REQUEST_TIME"]

REQUEST_GIL_WAIT = Family(
    "gilscope_request_gil_wait_seconds",
    "histogram",
    "What requests have waited for the GIL.",
    "By the time that the requests have taken it is the share of it that the GIL costs them.",
    ("route", "method"),
)
REQUEST_TIME = Family(
    "gilscope_request_seconds",
    "histogram",
    "How long requests have taken whose waits for the GIL are known.",
    "As long as they are: from the call of the middleware to the end of the response.",
    ("route", "method"),
)

CLIENT_FAMILIES = (REQUEST_GIL_WAIT, REQUEST_TIME)
