"""Reading in other threads, of which one may hang."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from gilscope.process import memory_reader
from gilscope.process.memory_reader import MemoryReader, Reading, ReadUnanswered
from gilscope.system.waiting_thread import Waiting, waits_for_memory


@pytest.fixture
def reader() -> Iterator[MemoryReader]:
    """One whose threads end with the test."""
    made = MemoryReader(patience_s=0.3)
    yield made
    made.close()


def test_result_and_failure_come_from_another_thread(reader: MemoryReader) -> None:
    """
    The same one, as long as one is enough.
    """
    first, second = (reader.read(7, threading.get_ident) for _ in range(2))

    assert first == second != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        reader.read(7, lambda: 1 // 0)
    assert first == reader.read(7, threading.get_ident)


def _no_more_threads(*_: object) -> None:
    raise RuntimeError("can't start new thread")


def test_without_room_for_a_thread_another_one_does_it(
    reader: MemoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Who reads next waits for the one that is there.
    """
    began, end = threading.Event(), threading.Event()

    def slow() -> int:
        began.set()
        end.wait(30)
        return threading.get_ident()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(reader.read, 7, slow)
        began.wait(30)
        monkeypatch.setattr(memory_reader, "_Worker", _no_more_threads)
        monkeypatch.setattr(reader, "_patience_s", 30.0)
        second = pool.submit(reader.read, 7, threading.get_ident)
        end.set()

    assert first.result() == second.result()


def test_without_any_thread_nothing_is_read(
    reader: MemoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Nobody would come back.
    """
    monkeypatch.setattr(memory_reader, "_Worker", _no_more_threads)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        reader.read(7, threading.get_ident)


def test_several_read_at_a_time(reader: MemoryReader) -> None:
    """
    Each in a thread of its own.
    """
    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: reader.read(7, lambda: together.wait(30)), range(3)))

    assert [0, 1, 2] == sorted(found)


def test_who_waits_for_memory_is_given_up(
    reader: MemoryReader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    What it comes to after all is discarded, once; others are read meanwhile.
    """
    monkeypatch.setattr(memory_reader, "waits_for_memory", lambda _thread: True)
    answer, discarded = threading.Event(), threading.Event()
    late: list[str] = []

    def discard(result: str) -> None:
        late.append(result)
        discarded.set()

    def hang() -> str:
        answer.wait(30)
        return "late"

    with pytest.raises(ReadUnanswered, match="memory of process 7 does not answer"):
        reader.read(7, hang, discard=discard)
    assert "read" == reader.read(8, lambda: "read", discard=discard)
    assert not late
    answer.set()

    assert discarded.wait(30)
    assert ["late"] == late
    assert "memory of process 7 does not answer" in caplog.text


def test_each_has_an_answer_of_its_own(reader: MemoryReader) -> None:
    """
    In the order in which they were asked; what fails costs no other.
    """
    readings = [
        Reading(7, lambda: "seven"),
        Reading(8, lambda: str(1 // 0)),
        Reading(9, lambda: "nine"),
    ]
    first, second, third = reader.read_each(readings)

    assert ("seven", "nine") == (first.get(), third.get())
    with pytest.raises(ZeroDivisionError):
        second.get()
    assert [] == reader.read_each([])


def test_one_that_hangs_keeps_no_other_from_being_read(
    reader: MemoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Another thread reads the rest, and the one that comes back late does not read it again.
    """
    monkeypatch.setattr(memory_reader, "waits_for_memory", lambda _thread: True)
    answer = threading.Event()
    threads: dict[int, list[int]] = {7: [], 8: [], 9: []}

    def note(pid: int) -> int:
        threads[pid].append(threading.get_ident())
        if pid == 8:
            answer.wait(30)
        return pid

    first, second, third = reader.read_each(
        [Reading(pid, lambda pid=pid: note(pid)) for pid in threads]  # type: ignore[misc]
    )
    hanging = [each for each in threading.enumerate() if each.ident in threads[8]]
    answer.set()
    for thread in hanging:
        thread.join(30)

    assert (7, 9) == (first.get(), third.get())
    with pytest.raises(ReadUnanswered, match="memory of process 8 does not answer"):
        second.get()
    assert threads[7] == threads[8] != threads[9]
    assert [1, 1, 1] == [len(each) for each in threads.values()]


def test_without_another_thread_the_rest_is_not_read(
    reader: MemoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What was read before is there all the same.
    """
    answer = threading.Event()
    monkeypatch.setattr(memory_reader, "waits_for_memory", lambda _thread: True)
    reader.read(7, lambda: None)
    monkeypatch.setattr(memory_reader, "_Worker", _no_more_threads)
    first, second, third = reader.read_each(
        [
            Reading(7, lambda: True),
            Reading(8, lambda: answer.wait(30)),
            Reading(9, lambda: True),
        ]
    )
    answer.set()

    assert first.get()
    with pytest.raises(ReadUnanswered):
        second.get()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        third.get()


def test_who_works_is_not_given_up(reader: MemoryReader) -> None:
    """
    However long it takes: only waiting for memory counts, of which this does nothing.
    """
    waited: list[float] = []
    pause = threading.Event()

    assert not reader.read(7, lambda: pause.wait(1.0), waited=waited.append)
    assert not waited


def test_so_many_hang_and_no_more(reader: MemoryReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Threads that hang cost memory each. They count as long as they hang.
    """
    monkeypatch.setattr(memory_reader, "_MOST_HANGING", 2)
    monkeypatch.setattr(memory_reader, "waits_for_memory", lambda _thread: True)
    answers = [threading.Event(), threading.Event()]
    for answer in answers:
        assert not reader.is_exhausted
        with pytest.raises(ReadUnanswered):
            reader.read(7, lambda answer=answer: answer.wait(30))  # type: ignore[misc]
    assert reader.is_exhausted
    hanging = [thread for thread in threading.enumerate() if thread.name == "memory-reader"]
    for answer in answers:
        answer.set()
    for thread in hanging:
        thread.join(30)

    assert not reader.is_exhausted


def test_a_thread_in_no_read_does_not_wait_for_memory() -> None:
    """
    Neither one that sleeps, nor one that runs, nor one that is not there.
    """
    begun, over = threading.Event(), threading.Event()

    def sleep() -> None:
        begun.set()
        over.wait(30)

    thread = threading.Thread(target=sleep)
    thread.start()
    begun.wait(30)
    assert not waits_for_memory(thread.native_id or 0)
    over.set()
    thread.join()
    assert not waits_for_memory(threading.get_native_id())
    assert not waits_for_memory(1 << 22)


def test_a_thread_that_reads_a_pipe_is_in_another_call() -> None:
    """
    It sleeps in a read, but not of memory.
    """
    readable, writable = os.pipe()
    thread = threading.Thread(target=os.read, args=(readable, 1))
    thread.start()
    assert not waits_for_memory(thread.native_id or 0)
    os.write(writable, b"x")
    thread.join()
    os.close(readable)
    os.close(writable)


def test_time_in_which_nobody_asked_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The agent may have been stopped; and another thing begins anew.
    """
    now_s = [100.0]
    monkeypatch.setattr("gilscope.system.waiting_thread.time.monotonic", lambda: now_s[0])
    waiting = Waiting()

    def after(seconds: float, awaited: str, *, waits: bool) -> float:
        now_s[0] += seconds
        return round(waiting.note(awaited, waits=waits), 6)

    assert 0 == after(0, "one", waits=True)
    assert 0.1 == after(0.1, "one", waits=True)
    assert 0.35 == after(60, "one", waits=True)
    assert 0.35 == after(0.1, "one", waits=False)
    assert 0.45 == after(0.1, "one", waits=True)
    assert 0 == after(0.1, "two", waits=True)
