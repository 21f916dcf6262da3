"""The names of traced containers, which kube-state-metrics knows and gilscope does not.

Both know the id of a container. Where there is no kube-state-metrics, nothing has a name, and
what does not ask for one is as it was.
"""

from collections.abc import Sequence

from dashboards.generator.queries import Aggregation, Query

from gilscope.metrics import table as metrics

__all__ = ["NAMES", "OFFERED", "named", "offered"]

NAMES = ("namespace", "pod", "container")
"""Labels that tell what a container is, from the largest to the smallest."""

_ID = "container_id"
# There the name of the runtime stands before it: containerd://4f5e... A container that has not
# been started has none, and must not be taken for what is in no container.
_STARTED = f'kube_pod_container_info{{{_ID}!=""}}'
_BARE = f'label_replace({_STARTED}, "{_ID}", "$1", "{_ID}", ".*//(.*)")'
_KNOWN = f"max by ({', '.join((_ID, *NAMES))}) ({_BARE})"

OFFERED = r'/container_id="(?<value>[^"]+)".*text="(?<text>[^"]+)"/'
"""How Grafana reads what `offered` yields: what is shown, and what it stands for."""


def named(query: Query, how: Aggregation = "sum") -> Query:
    """Return *query*, whose one label is the id of a container, by the names of containers.

    A container that has been started again has another id, and is added to what it was before.
    """
    joined = f"{query.expr}\n* on ({_ID}) group_left ({', '.join(NAMES)})\n{_KNOWN}"
    return Query(f"{how} by ({', '.join(NAMES)}) (\n{joined}\n)", query.families)


def offered(matchers: Sequence[str]) -> str:
    """Return a query for the traced containers, each with what is to be shown of it in ``text``.

    Without kube-state-metrics that is the beginning of the id, as Docker shows it.
    """
    chosen = ", ".join((*matchers, f'{_ID}!=""'))
    traced = f"group by ({_ID}) ({metrics.PROBE_VALID.name}{{{chosen}}})"
    words = ", ".join(f'"{name}"' for name in NAMES)
    known = f'label_join({_KNOWN}, "text", "/", {words}) and on ({_ID}) {traced}'
    unknown = f'label_replace({traced}, "text", "$1", "{_ID}", "(.{{12}}).*")'
    return f"query_result({known} or on ({_ID}) {unknown})"
