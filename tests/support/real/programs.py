"""The programs of the recipes, and where each of them keeps the GIL."""

from support.real.program import Program

__all__ = ["FEW", "MORE"]

_MORE = "more_requirements.txt"


def _of(*functions: str) -> frozenset[str]:
    return frozenset(functions)


FEW = (
    Program(
        "gunicorn-django",
        "gunicorn --worker-class gthread --threads 4 django_page:application",
        "django_page.py",
        _of("page"),
        is_server=True,
    ),
    Program(
        "uvicorn-fastapi",
        "uvicorn fast_prices:app",
        "fast_prices.py",
        _of("simulate"),
        is_server=True,
    ),
    Program(
        "joblib-pandas",
        "python joblib_groups.py",
        "joblib_groups.py",
        _of("spread", "summed_up"),
    ),
)
"""In `make test`."""

MORE = (
    Program(
        "gunicorn-flask",
        "gunicorn --worker-class gthread --threads 4 flask_prices:app",
        "flask_prices.py",
        _of("price"),
        _MORE,
        is_server=True,
    ),
    Program(
        "uvloop-fastapi",
        "uvicorn --loop uvloop fast_prices:app",
        "fast_prices.py",
        _of("simulate"),
        _MORE,
        is_server=True,
    ),
    Program(
        "blocked-loop",
        "uvicorn blocked_loop:app",
        "fast_prices.py",
        _of("simulate"),
        _MORE,
        is_server=True,
        says_uncontended="event loop for most of the time",
    ),
    Program(
        "thread-pool",
        "python pool_of_parsers.py",
        "pool_of_parsers.py",
        _of("parse", "parse.<locals>.<listcomp>"),
        _MORE,
    ),
    Program(
        "celery-threads",
        "celery --app celery_tasks worker --pool threads --loglevel info",
        "celery_tasks.py",
        _of("crunch"),
        _MORE,
        ends_by_signal=True,
    ),
    Program(
        "dask-cluster",
        "python dask_cluster.py",
        "dask_cluster.py",
        _of("simulate"),
        _MORE,
        known_as="<dynamic-code>",
    ),
    Program("joblib-sklearn", "python joblib_scaler.py", "joblib_scaler.py", _of("fitted"), _MORE),
    Program(
        "uwsgi-flask",
        "uwsgi --master --threads 4 --module flask_prices:app",
        "flask_prices.py",
        _of("price"),
        _MORE,
        is_server=True,
    ),
    Program("own-gils", "python3.14 own_gils.py", "own_gils.py", _of("crunch"), _MORE),
    Program(
        "http-server",
        "python -m http.server --bind 127.0.0.1 8000",
        "",
        _of(),
        _MORE,
        is_server=True,
    ),
    Program(
        "data-loader", "python batch_loader.py", "batch_loader.py", _of("main", "train"), _MORE
    ),
    Program(
        "celery-prefork",
        "celery --app celery_prefork worker --pool prefork --loglevel info",
        "celery_prefork.py",
        _of("crunch"),
        _MORE,
        says_uncontended="Python code has the GIL for most of the time",
        ends_by_signal=True,
    ),
    Program(
        "mod-wsgi",
        "/usr/sbin/apache2 -d . -f mod_wsgi.conf -D FOREGROUND",
        "flask_prices.py",
        _of("price"),
        _MORE,
        is_server=True,
    ),
    Program(
        "gdb",
        "gdb --batch --command heap_walk.py",
        "heap_walk.py",
        _of("crunch"),
        _MORE,
        known_as="heap_walk.py",
    ),
    Program(
        "pyinstaller-onedir",
        "dist/pool_of_parsers/pool_of_parsers",
        "pool_of_parsers.py",
        _of("parse", "parse.<locals>.<listcomp>"),
        _MORE,
        made_by="pyinstaller --onedir pool_of_parsers.py",
        known_as="pool_of_parsers.py",
    ),
    Program(
        "pyinstaller-onefile",
        "dist/pool_of_parsers",
        "pool_of_parsers.py",
        _of("parse", "parse.<locals>.<listcomp>"),
        _MORE,
        made_by="pyinstaller --onefile pool_of_parsers.py",
        known_as="pool_of_parsers.py",
    ),
    Program(
        "nuitka",
        "./pool_of_parsers.bin",
        "pool_of_parsers.py",
        _of("parse"),
        _MORE,
        made_by="python -m nuitka pool_of_parsers.py",
    ),
    Program(
        "cython",
        "python cython_sums.py",
        "cython_sums.py",
        _of("weigh"),
        _MORE,
        made_by="cythonize --inplace slow_sums.pyx",
        native=("slow_sums.", "summed"),
    ),
    Program(
        "pybind11",
        "python pybind_sums.py",
        "pybind_sums.py",
        _of("weigh"),
        _MORE,
        made_by="python native_sums_setup.py build_ext --inplace",
        native=("native_sums.", "summed"),
    ),
    Program(
        "notebook",
        "jupyter execute prices.ipynb",
        "prices.ipynb",
        _of("simulate"),
        _MORE,
        known_as="/4035716929.py",
        shown_as="notebook cell 4035716929",
        says_ready="Executing notebook with kernel",
        ends_by_signal=True,
    ),
)
"""In `make test-real`."""
