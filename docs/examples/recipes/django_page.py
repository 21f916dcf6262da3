"""A page of a shop that Django's templates make, to be served by gunicorn's threads.

Known answer: `page` keeps the GIL, with a library's code beneath it nearly all the time.
"""

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.template import engines
from django.urls import path

_PAGE = """
<table>{% for row in rows %}
  <tr class="{% cycle 'odd' 'even' %}">
    {% for cell in row %}<td>{{ cell|floatformat:2 }}</td>{% endfor %}
  </tr>
{% endfor %}</table>
"""

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of a test",  # noqa: S106 - which keeps none
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    USE_TZ=True,
)
django.setup()
ROWS = [[row * column / 7 for column in range(8)] for row in range(300)]
TEMPLATE = engines["django"].from_string(_PAGE)


def page(request):  # noqa: ARG001 (as Django calls it)
    return HttpResponse(TEMPLATE.render({"rows": ROWS}))


urlpatterns = [path("", page)]
application = get_wsgi_application()
