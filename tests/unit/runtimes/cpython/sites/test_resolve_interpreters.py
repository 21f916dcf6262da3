"""The resolver on real interpreters, against their symbols and a disassembler."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.runtimes.cpython.sites.code_index import read_code
from gilscope.runtimes.cpython.sites.lock_functions import find_lock_functions
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.cpython.sites.yield_path import yield_functions
from gilscope.runtimes.sites import Sites
from support.gil.lock_program import call_sites
from support.interpreters.known import ALL_INTERPRETERS, Interpreter, Unavailable, find_interpreter

_TIMED_WAIT = "pthread_cond_timedwait"
_SIGNAL = "pthread_cond_signal"
_WAIT = "pthread_cond_wait"

_BUILT_WITH_SYMBOLS = [f"pyenv-3.{minor}" for minor in range(6, 14)]

_YIELDS_BEFORE_HANDLE_PENDING = {"_PyEval_EvalFrameDefault", "eval_frame_handle_pending"}
_WAITS_FOR_THE_LOCK = ("take_gil", "_PyEval_AcquireLock", "_PyThreadState_Attach")


@pytest.fixture(scope="module", params=_BUILT_WITH_SYMBOLS)
def interpreter(request: pytest.FixtureRequest) -> Interpreter:
    """Return each interpreter whose symbols are the ground truth."""
    try:
        found = find_interpreter(request.param)
    except Unavailable as reason:
        pytest.skip(f"{request.param}: {reason}")
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed (apt install binutils)")
    return found


@pytest.fixture(scope="module")
def symbolized(interpreter: Interpreter) -> Path:
    """Return the file of the interpreter."""
    return interpreter.elf


@pytest.fixture(scope="module")
def sites(symbolized: Path) -> Sites:
    """Return what the resolver finds in it."""
    return resolve_sites(_image(symbolized))


@pytest.fixture(scope="module")
def calls(symbolized: Path) -> dict[str, dict[int, str]]:
    """Return every call of the three functions that objdump finds: name -> address -> caller."""
    return call_sites(symbolized, _TIMED_WAIT, _SIGNAL, _WAIT)


def _image(elf: Path) -> ElfImage:
    return ElfImage(elf.read_bytes())


def _function_at(image: ElfImage, pc: int) -> str:
    return next(
        function.name.partition(".")[0]
        for function in image.functions
        if function.vaddr <= pc < function.vaddr + function.size
    )


@pytest.mark.parametrize("found", ALL_INTERPRETERS)
def test_every_supported_interpreter_is_resolved(found: Interpreter) -> None:
    """
    Each build, stripped or not, has its sites, and rules from every wait to the loop's yield.
    """
    sites = resolve_sites(_image(found.elf))
    known = {rule.pc for rule in sites.callers}

    assert 1 <= len(sites.waits) <= 3
    assert 1 <= len(sites.acquires) <= 3
    assert sites.releases
    assert sites.yields
    assert {pause.call.vaddr for pause in sites.waits} <= known
    assert any(rule.made_to_yield for rule in sites.callers)


def test_waits_are_those_of_take_gil(sites: Sites, calls: dict[str, dict[int, str]]) -> None:
    """
    The timed waits found are those that objdump sees in take_gil and its copies.
    """
    expected = {site for site, name in calls[_TIMED_WAIT].items() if name == "take_gil"}

    assert expected == {pause.call.vaddr for pause in sites.waits}


def test_acquires_are_those_of_take_gil(sites: Sites, calls: dict[str, dict[int, str]]) -> None:
    """
    The signals taken for acquisitions are those that objdump sees in take_gil and its copies.
    """
    expected = {site for site, name in calls[_SIGNAL].items() if name == "take_gil"}

    assert expected == {site.vaddr for site in sites.acquires}


def test_releases_are_all_other_signals(sites: Sites, calls: dict[str, dict[int, str]]) -> None:
    """
    Every other signal in the interpreter is a release: drop_gil and what it was inlined into.
    """
    expected = {site for site, name in calls[_SIGNAL].items() if name != "take_gil"}

    assert "drop_gil" in calls[_SIGNAL].values()
    assert expected == {site.vaddr for site in sites.releases}


def test_yields_stand_where_the_lock_is_dropped(
    sites: Sites, calls: dict[str, dict[int, str]]
) -> None:
    """
    The untimed waits are those of the functions that also release, or of drop_gil.
    """
    droppers = set(calls[_SIGNAL].values()) - {"take_gil"}
    expected = {site for site, name in calls[_WAIT].items() if name in droppers | {"drop_gil"}}

    assert expected == {pause.call.vaddr for pause in sites.yields}


def test_the_yield_is_the_evaluation_loop_s(interpreter: Interpreter, symbolized: Path) -> None:
    """
    The loop's yield is the function that each version uses for it, and never the C API.
    """
    image = _image(symbolized)
    code = read_code(image)

    found = {
        _function_at(image, entry) for entry in yield_functions(code, find_lock_functions(code))
    }

    if interpreter.minor >= (3, 12):
        assert {"_Py_HandlePending"} == found
    else:
        assert 1 == len(found)
        assert found <= _YIELDS_BEFORE_HANDLE_PENDING


def test_the_way_up_passes_only_through_the_lock(sites: Sites, symbolized: Path) -> None:
    """
    Below the yield, every rule lies in take_gil or the two functions that lead to it.
    """
    image = _image(symbolized)
    found = {_function_at(image, rule.pc) for rule in sites.callers if not rule.made_to_yield}

    assert "take_gil" in found
    assert found <= set(_WAITS_FOR_THE_LOCK)


def test_stripping_changes_nothing(sites: Sites, symbolized: Path, tmp_path: Path) -> None:
    """
    A twin without any symbols has the same sites and rules.
    """
    if shutil.which("strip") is None:
        pytest.skip("strip is not installed (apt install binutils)")
    twin = tmp_path / "twin"
    subprocess.run(["strip", "--strip-all", "-o", str(twin), str(symbolized)], check=True)
    found = resolve_sites(_image(twin))

    assert (sites.waits, sites.yields, sites.acquires, sites.releases, sites.callers) == (
        found.waits,
        found.yields,
        found.acquires,
        found.releases,
        found.callers,
    )


def test_symbols_were_compared(sites: Sites) -> None:
    """
    Where a file has symbols, the resolver has compared its findings with them.
    """
    assert any(check.startswith("the file's symbols agree: drop_gil") for check in sites.checks)
