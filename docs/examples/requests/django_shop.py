"""A shop in Django that tells what each request has waited for the GIL, by route.

gunicorn --worker-class gthread --threads 4 django_shop:application
"""

import threading

import django
import prometheus_client
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

from gilscope_client.wsgi import Middleware

settings.configure(
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=[f"{__name__}.Routes"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of an example",  # noqa: S106 - which keeps none
)
django.setup()


class Routes:
    """Notes the route of each request where the middleware around the application finds it."""

    def __init__(self, get_response):
        self._get_response = get_response

    def __call__(self, request):
        response = self._get_response(request)
        if request.resolver_match is not None:
            request.META["gilscope.route"] = "/" + request.resolver_match.route
        return response


def cart(request, number):  # noqa: ARG001 - as Django calls it
    return HttpResponse(f"{sum(range(1000 * number))}")


def metrics(request):  # noqa: ARG001 - as Django calls it
    return HttpResponse(prometheus_client.generate_latest(), content_type="text/plain")


def refresh_prices():
    """Compute for ever, beside the requests: what they wait for."""
    while True:
        sum(range(10_000))


urlpatterns = [path("cart/<int:number>", cart), path("metrics", metrics)]
application = Middleware(
    get_wsgi_application(), route=lambda environ: environ.get("gilscope.route", "")
)
threading.Thread(target=refresh_prices, daemon=True).start()
