"""Tests of the exit code."""

from gilscope.model.diagnosis import Check, Diagnosis, ProcessDiagnosis, Status, has_failed

_OK = Check("kernel", Status.OK, "fine")
_DOUBT = Check("pid_namespace", Status.WARNING, "alone")
_UNKNOWN = Check("probes", Status.UNKNOWN, "not tried")
_NOT_PERMITTED = Check("capabilities", Status.MISSING, "none", exit_code=5)
_NO_BCC = Check("bcc", Status.MISSING, "none", exit_code=6)
_NO_PYTHON = Check("interpreter", Status.MISSING, "none", exit_code=3)


def test_all_well() -> None:
    """
    Warnings, and what could not be found out, do not fail.
    """
    assert 0 == Diagnosis((_OK, _DOUBT, _UNKNOWN)).exit_code


def test_the_first_failure_decides() -> None:
    """
    The code is that of the first thing that is missing.
    """
    assert 5 == Diagnosis((_OK, _NOT_PERMITTED, _NO_BCC)).exit_code


def test_the_machine_comes_before_the_process() -> None:
    """
    The process decides only on a machine that works.
    """
    process = ProcessDiagnosis(7, "app", (_OK, _NO_PYTHON))

    assert 3 == Diagnosis((_OK,), process).exit_code
    assert 6 == Diagnosis((_NO_BCC,), process).exit_code


def test_has_failed_follows_the_order_of_the_names() -> None:
    """
    Of several failures the first by the order of the question is returned.
    """
    assert "bcc" == has_failed((_NOT_PERMITTED, _NO_BCC), "bcc", "capabilities")
    assert None is has_failed((_OK, _UNKNOWN), "kernel", "probes")
