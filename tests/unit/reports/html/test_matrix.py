"""Time lost as a matrix of two names."""

from gilscope.reports.html.matrix import OTHERS, matrix_of

_LOST = [(f"wait_{number}", "crunch", number + 1) for number in range(5)]


def test_the_cheapest_are_put_together() -> None:
    """
    Of five rows two have names; the sums stay those of all.
    """
    matrix = matrix_of(_LOST, rows=2, columns=2)

    assert ("wait_4", "wait_3", OTHERS) == matrix.rows
    assert ("crunch",) == matrix.columns
    assert [5, 4, 6] == [matrix.row_ns(row) for row in matrix.rows]
    assert 15 == matrix.column_ns("crunch") == matrix.whole_ns


def test_one_alone_is_not_put_together() -> None:
    """
    A row for the others that holds but one could as well have its name.
    """
    matrix = matrix_of([("a", "x", 3), ("b", "y", 2), ("b", "z", 1)], rows=1, columns=2)

    assert ("a", "b") == matrix.rows
    assert ("x", "y", "z") == matrix.columns
