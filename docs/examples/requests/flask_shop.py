"""A shop in Flask that tells what each request has waited for the GIL, by route.

gunicorn --worker-class gthread --threads 4 flask_shop:app
"""

import threading

import prometheus_client
from flask import Flask, Response, request

from gilscope_client.wsgi import Middleware

app = Flask(__name__)
app.wsgi_app = Middleware(app.wsgi_app, route=lambda environ: environ.get("gilscope.route", ""))


@app.before_request
def note_route():
    """Note the route where the middleware around the application finds it."""
    if request.url_rule is not None:
        request.environ["gilscope.route"] = request.url_rule.rule


@app.get("/cart/<int:number>")
def cart(number):
    return f"{sum(range(1000 * number))}"


@app.get("/metrics")
def metrics():
    return Response(prometheus_client.generate_latest(), mimetype="text/plain")


def refresh_prices():
    """Compute for ever, beside the requests: what they wait for."""
    while True:
        sum(range(10_000))


threading.Thread(target=refresh_prices, daemon=True).start()
