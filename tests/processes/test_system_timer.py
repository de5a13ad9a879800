"""The thread-safe timer in programs of their own: how they end, sleep and go on after a stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def start(program: str) -> subprocess.Popen[str]:
    """A Python of its own that runs the program; its output is read line by line."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def still_runs_after(process: subprocess.Popen[str], seconds: float) -> None:
    """Let real time pass; the process must not end in it."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds)


def monotonic_ms() -> int:
    """The clock of every timer of this machine."""
    return time.monotonic_ns() // 1_000_000


def end_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate()
    return process.returncode, out, err


def switches_of(pid: int) -> dict[str, int]:
    """How often each thread of a process gave up the processor by itself."""
    switches = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                switches[task.name] = int(line.split()[1])
    return switches


def sleeps(pid: int) -> bool:
    """Whether every thread of a process sleeps, and went to sleep no later than the first look."""
    before = switches_of(pid)
    states = {
        (task / "stat").read_text().rpartition(") ")[2][0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    }
    return states == {"S"} and switches_of(pid) == before


def test_a_program_ends_with_timers_pending_and_says_nothing() -> None:
    program = start("""
        from tarry.timer.system_timer import SystemTimer

        timer = SystemTimer()
        timer.call_later(3_600_000, print, "pending")
        timer.call_every(1, lambda: None)
        print("main ends")
    """)

    assert end_of(program) == (0, "main ends\n", "")


def test_a_program_ends_while_many_beats_are_busy() -> None:
    program = start("""
        import threading
        from tarry.timer.system_timer import SystemTimer

        busy = threading.Semaphore(0)
        timers = [SystemTimer(f"timer-{number}") for number in range(5)]
        for timer in timers:
            for number in range(20):
                timer.call_every(1, busy.release)
        for _ in range(300):
            busy.acquire()
        print("main ends")
    """)

    assert end_of(program) == (0, "main ends\n", "")


def test_a_program_ends_by_an_error_though_timers_are_pending() -> None:
    program = start("""
        from tarry.timer.system_timer import SystemTimer

        timer = SystemTimer()
        timer.call_every(1, lambda: None)
        raise SystemExit(3)
    """)

    assert end_of(program) == (3, "", "")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_program_runs_at_its_exit_may_still_use_its_timer(moment: str) -> None:
    program = start(f"""
        import atexit
        from tarry.timer.system_timer import SystemTimer

        if "{moment}" == "before":
            atexit.register(lambda: leave())
        timer = SystemTimer()
        timer.call_later(3_600_000, print, "ran at the end")
        entry = timer.call_later(3_600_000, print, "cancelled")

        def leave():
            print(timer.cancel(entry), timer.shutdown(run_pending=True))

        if "{moment}" == "after":
            atexit.register(leave)
    """)

    assert end_of(program) == (0, "ran at the end\nTrue 1\n", "")


def test_the_reaper_has_ended_before_the_interpreter_is_taken_down() -> None:
    program = start("""
        import atexit, threading
        from tarry.timer.system_timer import SystemTimer

        atexit.register(lambda: print([each.name for each in threading.enumerate()]))
        timer = SystemTimer()
        timer.call_later(3_600_000, print)
    """)

    assert end_of(program) == (0, "['MainThread']\n", "")


def test_an_idle_timer_never_wakes() -> None:
    program = start("""
        import threading
        from tarry.timer.system_timer import SystemTimer

        has_run = threading.Event()
        timer = SystemTimer()
        timer.call_later(7 * 3_600_000, print)
        timer.call_later(1, has_run.set)
        has_run.wait()
        # Asleep, or about to be: it knows until when.
        while timer._reaper.wake_ms < timer.now_ms():
            pass
        print("ready", flush=True)
        input()
    """)
    assert line_of(program) == "ready"
    while not sleeps(program.pid):
        still_runs_after(program, 0.01)

    before = switches_of(program.pid)
    still_runs_after(program, 0.5)
    after = switches_of(program.pid)
    say(program, "go on")

    assert len(before) == 3
    assert after == before
    assert end_of(program) == (0, "", "")


def test_a_stopped_process_catches_up_with_all_that_was_due_once_and_in_order() -> None:
    program = start("""
        import threading
        from tarry.timer.system_timer import SystemTimer

        ran, missed = [], []
        is_over = threading.Event()
        timer = SystemTimer()
        entries = [
            timer.call_later(300 + number // 100, ran.append, number) for number in range(20_000)
        ]
        deadlines = [entry.deadline_ms for entry in entries]
        timer.call_every(20, lambda: None, on_missed=missed.append)
        last = timer.call_later(600, is_over.set)
        print(last.deadline_ms, flush=True)
        input()
        print(timer.now_ms() > last.deadline_ms)
        is_over.wait()
        # Entries due in the same millisecond have no order if the timer advanced between the adds.
        is_in_order = [deadlines[number] for number in ran] == sorted(deadlines)
        print(is_in_order and sorted(ran) == list(range(20_000)), sum(missed) > 10)
    """)
    last_ms = int(line_of(program))

    os.kill(program.pid, signal.SIGSTOP)
    say(program, "go on")
    # Past the last deadline, and past more than ten beats, wherever it was when it stopped.
    until_ms = max(last_ms, monotonic_ms() + 300) + 1
    while monotonic_ms() <= until_ms:
        still_runs_after(program, 0.01)
    os.kill(program.pid, signal.SIGCONT)

    assert end_of(program) == (0, "True\nTrue True\n", "")
