"""Flattening of probes."""

from gilscope.bpf.compile.source import flatten


def test_quoted_include_is_replaced_by_the_file_once() -> None:
    """
    A shared header appears where it is first included; line numbers stay true.
    """
    files = {
        "a.bpf.c": '#include <linux/bpf.h>\n#include "x.bpf.h"\n#include "x.bpf.h"\nint a;',
        "x.bpf.h": "int x;",
    }

    expected = (
        '#line 1 "a.bpf.c"\n#include <linux/bpf.h>\n'
        '#line 1 "x.bpf.h"\nint x;\n#line 3 "a.bpf.c"\n#line 4 "a.bpf.c"\nint a;\n'
    )
    assert expected == flatten("a.bpf.c", files.__getitem__)
