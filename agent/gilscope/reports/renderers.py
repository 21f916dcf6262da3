"""Makes a recording into one of the forms in which it can be reported."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gilscope.model.session import Session
from gilscope.reports.gil.text import report as text_report
from gilscope.reports.gil.text import screen
from gilscope.reports.gil.text import session as session_text

__all__ = ["RENDERERS", "text"]


def text(session: Session, *, colour: bool, whole: bool) -> str:
    """Return the text report, or, if it is not wanted as a *whole*, one screen of it."""
    return "\n".join(_texts(session, colour=colour, whole=whole))


def _texts(session: Session, *, colour: bool, whole: bool) -> Iterator[str]:
    has_others = bool(session.transactions or session.locks)
    if not whole and (session.recordings or not has_others):
        yield screen.render(session, colour=colour)
    elif session.is_one_process and session.recordings:
        yield text_report.render(session.recordings[0], colour=colour)
    elif not session.is_one_process:
        yield session_text.render(session, colour=colour)
    if session.transactions:
        from gilscope.reports.transactions import text as transactions_text  # noqa: PLC0415 - imported when it is asked for

        for recording in session.transactions:
            yield transactions_text.render(recording, colour=colour)
    if session.locks:
        from gilscope.reports.locks import text as locks_text  # noqa: PLC0415 - imported when it is asked for

        for each in session.locks:
            yield locks_text.render(each, colour=colour, whole=whole)


def _json(session: Session) -> str:
    if session.is_one_process and session.transactions:
        from gilscope.reports.transactions import json  # noqa: PLC0415 - imported when it is asked for

        return json.render(session.transactions[0])
    from gilscope.reports import session_json  # noqa: PLC0415 - likewise

    return session_json.render(session)


def _html(session: Session) -> str:
    from gilscope.reports.gil.html import report as html_report  # noqa: PLC0415 - imported when it is asked for

    if not (session.recordings or session.transactions or session.locks):
        raise ValueError("no process was traced")
    if not (session.transactions or session.locks):
        return html_report.render(*session.recordings)
    from gilscope.reports.locks import html as of_locks  # noqa: PLC0415 - likewise
    from gilscope.reports.transactions import html as of_transactions  # noqa: PLC0415 - likewise

    if not (session.recordings or session.locks):
        return of_transactions.render(*session.transactions)
    if not (session.recordings or session.transactions):
        return of_locks.render(*session.locks)
    parts = [*of_transactions.parts(session.transactions), *of_locks.parts(session.locks)]
    return html_report.render(*session.recordings, more=parts)


def _markdown(session: Session) -> str:
    from gilscope.reports.gil import markdown  # noqa: PLC0415 - imported when it is asked for
    from gilscope.reports.locks import markdown as of_locks  # noqa: PLC0415 - likewise
    from gilscope.reports.transactions import markdown as of_transactions  # noqa: PLC0415 - likewise

    parts = [of_transactions.render(each) for each in session.transactions]
    parts += [of_locks.render(each) for each in session.locks]
    if session.recordings or not parts:
        parts.insert(0, markdown.render(session))
    return "\n".join(parts)


def _collapsed(session: Session) -> str:
    from gilscope.reports.gil import collapsed  # noqa: PLC0415 - imported when it is asked for
    from gilscope.reports.locks import collapsed as of_locks  # noqa: PLC0415 - likewise
    from gilscope.reports.transactions import collapsed as of_transactions  # noqa: PLC0415 - likewise

    names_process = not session.is_one_process
    lost = of_transactions.render(*session.transactions, names_process=names_process)
    lost += of_locks.render(*session.locks, names_process=names_process)
    return lost + collapsed.render(*session.recordings)


def _speedscope(session: Session) -> str:
    from gilscope.reports.gil import speedscope  # noqa: PLC0415 - imported when it is asked for

    return speedscope.render(
        *session.recordings, transactions=session.transactions, locks=session.locks
    )


def _pprof(session: Session) -> bytes:
    from gilscope.reports.gil.profiles import pprof  # noqa: PLC0415 - imported when it is asked for

    return pprof.render(*session.recordings, transactions=session.transactions, locks=session.locks)


def _otlp_profiles(session: Session) -> str:
    from gilscope.reports.gil.profiles import otlp  # noqa: PLC0415 - imported when it is asked for

    return otlp.render(*session.recordings)


def _perfetto(session: Session) -> str:
    from gilscope.reports.gil import perfetto  # noqa: PLC0415 - imported when it is asked for

    return perfetto.render(*session.recordings, locks=session.locks)


def _openmetrics(session: Session) -> str:
    from gilscope.reports.gil import openmetrics  # noqa: PLC0415 - imported when it is asked for

    return openmetrics.render(*session.recordings)


def _prometheus(session: Session) -> str:
    from gilscope.reports.gil import prometheus  # noqa: PLC0415 - imported when it is asked for

    return prometheus.render(*session.recordings)


RENDERERS: Final[Mapping[str, Callable[[Session], str | bytes]]] = {
    "json": _json,
    "html": _html,
    "markdown": _markdown,
    "collapsed": _collapsed,
    "speedscope": _speedscope,
    "pprof": _pprof,
    "otlp-profiles": _otlp_profiles,
    "perfetto": _perfetto,
    "openmetrics": _openmetrics,
    "prometheus": _prometheus,
}
"""By form, but for text; what is no text is bytes. Each is imported when it is asked for."""
