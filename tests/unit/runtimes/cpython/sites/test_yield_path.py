"""The way from a wait back to the evaluation loop's yield, on programs of the GIL's shape."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.runtimes.cpython.sites.code_index import read_code
from gilscope.runtimes.cpython.sites.lock_functions import find_lock_functions
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.cpython.sites.yield_path import yield_functions
from gilscope.runtimes.sites import CallerRule
from support.gil.lock_program import BUILDS, Build, build_program

_INLINED, _SEPARATE, _EXPORTED = BUILDS[:3]
_WAYS: Mapping[str, tuple[list[str], list[str]]] = {
    "inlined_yield": (["take_gil"], ["_PyEval_EvalFrameDefault"]),
    "separate_yield": (["take_gil"], ["eval_frame_handle_pending"]),
    "exported_yield": (["acquire_lock", "attach", "take_gil"], ["_Py_HandlePending"]),
}


def _function_names(image: ElfImage, rules: list[CallerRule]) -> list[str]:
    """Return the sorted names of the functions in which the rules' addresses lie."""
    names = {
        function.name.partition(".")[0]
        for rule in rules
        for function in image.functions
        if function.vaddr <= rule.pc - (not _is_wait(rule)) < function.vaddr + function.size
    }
    return sorted(names)


def _is_wait(rule: CallerRule) -> bool:
    return not rule.made_to_yield and rule.cfa_offset > 0


@pytest.fixture(scope="module", params=BUILDS, ids=[build.name for build in BUILDS])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program in one of the ways."""
    return build_program(request.param, tmp_path_factory.mktemp("program"))


def _image(program: Path) -> ElfImage:
    return ElfImage(program.read_bytes())


def _callers(program: Path) -> tuple[CallerRule, ...]:
    return resolve_sites(_image(program)).callers


def _yields(program: Path) -> list[str]:
    image = _image(program)
    code = read_code(image)
    entries = yield_functions(code, find_lock_functions(code))
    return sorted(symbol.name for symbol in image.functions if symbol.vaddr in entries)


def test_the_way_up_ends_in_the_yield(program: Path) -> None:
    """
    The rules lie in take_gil, its wrappers and the yield, and in no function of the C API.
    """
    image = _image(program)
    rules = resolve_sites(image).callers
    steps, ends = _WAYS[program.name.rpartition("-")[2]]

    assert steps == _function_names(image, [rule for rule in rules if not rule.made_to_yield])
    assert ends == _function_names(image, [rule for rule in rules if rule.made_to_yield])


def test_each_wait_has_a_rule(program: Path) -> None:
    """
    The way up begins at the address of each timed wait.
    """
    sites = resolve_sites(_image(program))
    known = {rule.pc for rule in sites.callers}

    assert {pause.call.vaddr for pause in sites.waits} <= known


def test_the_yield_is_found(program: Path) -> None:
    """
    The function in which the loop yields is told by its export or its message.
    """
    _, ends = _WAYS[program.name.rpartition("-")[2]]

    assert ends == _yields(program)


def test_the_check_names_the_yield(program: Path) -> None:
    """
    The sentence for people gives the address of the yield's function.
    """
    image = _image(program)
    (name,) = _yields(program)
    (entry,) = (function.vaddr for function in image.functions if function.name == name)

    expected = f"the evaluation loop yields in the function at {entry:#x}"

    assert expected in resolve_sites(image).checks


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"tstate mix-up", b"tstate mix-op")],
)
def test_without_its_message_the_yield_is_unknown(tmp_path: Path, old: bytes, new: bytes) -> None:
    """
    A yield that neither its name nor its message tells gives no rules, and a check that says so.
    """
    content = build_program(_SEPARATE, tmp_path).read_bytes()
    assert old in content

    sites = resolve_sites(ElfImage(content.replace(old, new)))

    assert () == sites.callers
    assert (
        "the evaluation loop's yield was not identified: why a thread waits is unknown"
        in sites.checks
    )


@pytest.mark.parametrize(
    "shape",
    [
        "YIELD_BY_TAIL_CALL",  # its frame is gone when take_gil waits
        "YIELD_WITHOUT_DROP",  # it takes and never gives up: not a yield
        "YIELD_THROUGH_FOUR",  # more steps than the probe makes
        "YIELD_BY_TWO_WAYS",  # one of which has too many steps
        "SECOND_YIELD",  # the loop also takes the lock by itself
    ],
)
def test_an_uncertain_yield_gives_no_rules(tmp_path: Path, shape: str) -> None:
    """
    Where the rules could take a yield for a blocking call or the reverse, there are none.
    """
    build = Build(shape.lower(), (*_EXPORTED.flags, f"-D{shape}"))

    assert () == _callers(build_program(build, tmp_path))


def test_a_jump_is_no_step(tmp_path: Path) -> None:
    """
    A function that ends in a jump to the next one has no frame then, however many there are.
    """
    build = Build("through_jump", (*_EXPORTED.flags, "-DYIELD_THROUGH_JUMP"))
    plain, jumping = (_callers(build_program(each, tmp_path)) for each in (_EXPORTED, build))

    assert [rule.made_to_yield for rule in plain] == [rule.made_to_yield for rule in jumping]
    assert any(rule.made_to_yield for rule in jumping)


def test_both_copies_of_take_gil_lead_to_their_callers(tmp_path: Path) -> None:
    """
    With a copy of take_gil for the C API, the wait in either copy has its rule.
    """
    build = Build("copied", (*_INLINED.flags, "-DCOPIED_TAKE"))
    image = _image(build_program(build, tmp_path))
    rules = resolve_sites(image).callers

    assert [False, False, True] == sorted(rule.made_to_yield for rule in rules)


def test_a_frame_pointer_is_followed(tmp_path: Path) -> None:
    """
    In a build with frame pointers the rules count from rbp and know where the caller's is saved.
    """
    build = Build("frames", (*_EXPORTED.flags, "-fno-omit-frame-pointer"))
    rules = [rule for rule in _callers(build_program(build, tmp_path)) if not rule.made_to_yield]

    assert {(True, 16, -16)} == {
        (rule.cfa_from_frame_pointer, rule.cfa_offset, rule.saved_frame_pointer_offset)
        for rule in rules
    }
