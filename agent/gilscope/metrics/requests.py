"""What is exported of the requests that traced processes serve, where they publish that."""

from gilscope.metrics.family import of_process

__all__ = ["GIL_ROUTE_REQUESTS", "GIL_ROUTE_WAIT", "GIL_ROUTE_WAITS"]

GIL_ROUTE_WAIT = of_process(
    "gilscope_gil_route_wait_seconds_total",
    "counter",
    "Time that requests of a route have waited for the GIL, where the process publishes which its "
    "threads serve; finished waits only.",
    "By the number of requests of the route it is what the GIL adds to each of them.",
    "route",
)
GIL_ROUTE_WAITS = of_process(
    "gilscope_gil_route_waits_total",
    "counter",
    "Waits of requests of a route for the GIL.",
    "Many short ones in each request are calls that release the GIL; few long ones are holders.",
    "route",
)
GIL_ROUTE_REQUESTS = of_process(
    "gilscope_gil_route_requests_total",
    "counter",
    "Requests of a route that have waited for the GIL, by their traces.",
    "Those that have not waited are unknown here: the service's own count has them.",
    "route",
)
