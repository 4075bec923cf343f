"""Whatever a factory's process does, the command has an answer; here with processes that need no PyTorch."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepprophet.factory_main import as_json, options_of
from deepprophet.factory_process import Answer, run_process

CALLED = "m:f was called"
SLEEP_SECONDS = 60
"""What would keep the command sleeps for so long; the answer must come before that."""
PROLOGUE = f"""
import json, os, signal, sys, threading, time
spec = json.loads(sys.argv[1])
def say(**message): os.write(spec["answer"], json.dumps(message).encode() + b"\\n")
def answer(out="the document"): say(status=0, out=out, problem="")
say(doing={CALLED!r}, theirs=True)
"""


def run(code: str) -> Answer:
    return run_process([sys.executable, "-c", PROLOGUE + code], {})


def test_an_answer_is_heard() -> None:
    assert run("answer()") == Answer(0, "the document")
    assert run("answer('x' * 3_000_000)").out == "x" * 3_000_000
    assert run("say(status=2, out='', problem='wrong')") == Answer(2, "", "wrong")


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("os._exit(0)", 2, f"while {CALLED} the code ended the process with status 0, as os._exit does"),
        ("os._exit(7)", 2, "with status 7"),
        ("sys.exit(0)", 2, "with status 0"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 2, f"while {CALLED} the process was ended by SIGSEGV"),
        ("os.abort()", 2, "was ended by SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 1, "was ended by SIGKILL; the system may have been out of memory"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 1, "was ended by SIGTERM"),
        ("say(doing='operators were measured', theirs=False); os.abort()", 1, "while operators were measured"),
        ("os.closerange(3, 99); time.sleep(60)", 2, f"while {CALLED} the code closed all open files"),
        ("threading.Timer(0.1, os._exit, [3]).start(); time.sleep(60)", 2, "with status 3"),
        ("(os.fork() or time.sleep(5)); os._exit(4)", 2, "with status 4"),
    ],
)  # fmt: skip
def test_an_end_without_an_answer_is_told(code: str, status: int, words: str) -> None:
    began = time.monotonic()
    found = run(code)
    assert (found.status, found.out) == (status, "")
    assert words in found.problem
    assert "\n" not in found.problem
    assert time.monotonic() - began < SLEEP_SECONDS


def test_what_is_left_running_does_not_keep_the_answer() -> None:
    began = time.monotonic()
    assert run("threading.Thread(target=time.sleep, args=[60]).start(); answer()").out == "the document"
    assert run("answer() if os.fork() else time.sleep(5)").out == "the document"
    assert time.monotonic() - began < SLEEP_SECONDS


def test_prints_go_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    code = "print('x' * 1000, end='', flush=True); os.write(1, b'raw'); os.system('echo below'); answer()"
    assert run(code).out == "the document"
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.count("x") == 1000
    assert "raw" in told.err and "below" in told.err


WAITER = """
import sys
from deepprophet.factory_process import run_process
code = "import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(os.getpid(), flush=True)\\n"
try:
    run_process([sys.executable, "-c", code + "while True: time.sleep(1)"], {})
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_ends_what_never_returns() -> None:
    waiter = subprocess.Popen([sys.executable, "-c", WAITER], stderr=subprocess.PIPE, text=True)
    assert waiter.stderr is not None
    try:
        child = int(waiter.stderr.readline())
        waiter.send_signal(signal.SIGINT)
        assert waiter.wait(20) == 130
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
    finally:
        waiter.kill()
        waiter.communicate()


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_closed_standard_streams_are_no_fault(closed: str, tmp_path: Path) -> None:
    code = (
        "import sys; from deepprophet.factory_process import run_process; "
        f"found = run_process([sys.executable, '-c', {PROLOGUE + 'print(1); answer()'!r}], {{}}); "
        f"open({str(tmp_path / 'told')!r}, 'w').write(found.out)"
    )
    shell = f'exec "$0" "$@" {" ".join(f"{number}>&-" for number in closed.split())}'
    subprocess.run(["sh", "-c", shell, sys.executable, "-c", code], check=True, timeout=60, capture_output=True)
    assert (tmp_path / "told").read_text() == "the document"


def test_no_descriptor_and_no_thread_is_left_behind() -> None:
    """In a process of its own: what it leaves has no name by which it could be told from what other tests left."""
    code = f"""
import contextlib, os, sys, threading
from deepprophet.factory_process import run_process
def held(): return sorted(os.listdir("/proc/self/fd")), threading.active_count()
before = held()
for code in ("answer()", "os._exit(0)"):
    run_process([sys.executable, "-c", {PROLOGUE!r} + code], {{}})
    assert held() == before
with contextlib.suppress(OSError):
    run_process(["/nonexistent/python"], {{}})
    raise SystemExit("a program that does not exist was started")
assert held() == before
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_options_go_to_the_process_and_back() -> None:
    options = argparse.Namespace(
        factory="m:f", network=Path("n.yaml"), mapping=None, calibration=None, device_sheet=None, timeline=None,
        registration=Path("r"), workers=[1, 2],
        run=print,
    )  # fmt: skip
    again = options_of(as_json(options))
    del options.run
    assert again == options
