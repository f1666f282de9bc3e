import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.benchmarks.tasks.dataset import Problem, load_problems
from tests.benchmarks.tasks.sandbox import Limits, Outcome, Sandbox

DEV_DATA = Path(__file__).parents[5] / "shared/data/humaneval_infill_dev.jsonl.gz"

PROBLEM = Problem(
    task_id="SingleLineInfilling/HumanEval/0/L0",
    entry_point="double",
    prompt="def double(x):\n",
    suffix="    return y\n",
    canonical_solution="    y = 2 * x\n",
    test="def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(5) == 10\n",
)

# Fills that exit before the tests run, or do what the sandbox refuses. The rest of each fill is right.
MISBEHAVIOURS = {
    "sys-exit": "import sys; sys.exit(0)",
    "os-exit": "import os; os._exit(0)",
    "kills-itself": "import signal; signal.raise_signal(9)",
    "crashes": "import faulthandler; faulthandler._sigsegv()",
    "fork": "import os; os.fork()",
    "subprocess": "import subprocess; subprocess.run(['true'])",
    "system": "import os; os.system('true')",
    "multiprocessing": "import multiprocessing as m; m.Process(target=print).start()",
    "socket": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "url": "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')",
    "writes": "open('note.txt', 'w').write('x')",
    "appends": "open('/tmp/lacuna-note.txt', 'a')",
    "low-level-write": "import os; os.open('note.txt', os.O_CREAT | os.O_WRONLY)",
    "removes": "import os; os.remove('/tmp/lacuna-none')",
    "ctypes": "import ctypes; ctypes.string_at(0)",
    "kill": "import os; os.kill(os.getppid(), 9)",
    "huge-memory": "z = bytearray(1 << 33)",
    "growing-memory": "z = []\n    while True: z.append(bytes(1 << 26))",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture(scope="module", params=["namespaces", "limits"])
def each_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(namespaces=request.param == "namespaces") as running:
        yield running


def fill(text: str) -> str:
    return PROBLEM.program(f"    {text}\n    y = 2 * x\n")


def test_the_right_fill_passes(each_sandbox: Sandbox) -> None:
    assert each_sandbox.run(PROBLEM.program(PROBLEM.canonical_solution)) == Outcome("passed")


def test_a_wrong_fill_fails(each_sandbox: Sandbox) -> None:
    assert each_sandbox.run(PROBLEM.program("    y = 3 * x\n")) == Outcome("failed", "AssertionError")


def test_a_fill_that_swallows_the_tests_fails(sandbox: Sandbox) -> None:
    assert sandbox.run(PROBLEM.program('    return 1\n"""\n')).verdict == "failed"


@pytest.mark.parametrize("text", MISBEHAVIOURS.values(), ids=MISBEHAVIOURS)
def test_misbehaviour_is_a_failure(each_sandbox: Sandbox, text: str) -> None:
    assert each_sandbox.run(fill(text)).verdict == "failed"
    assert each_sandbox.run(fill("pass")).verdict == "passed"


@pytest.mark.parametrize("text", ["while True: pass", "import time; time.sleep(60)", "10 ** 10 ** 9"])
def test_a_program_that_does_not_end_times_out(text: str) -> None:
    with Sandbox(Limits(wall_s=0.5)) as sandbox:
        assert sandbox.run(fill(text)) == Outcome("timeout")


def test_output_is_discarded_and_input_is_empty(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    assert sandbox.run(fill("print('loud' * 100_000)")).verdict == "passed"
    assert sandbox.run(fill("input()")) == Outcome("failed", "EOFError")
    assert capfd.readouterr() == ("", "")


def test_every_run_starts_in_an_empty_folder_and_leaves_no_folder(sandbox: Sandbox) -> None:
    assert (
        sandbox.run("import os\nassert os.listdir() == []\nassert 'lacuna-sandbox-' in os.getcwd()").verdict == "passed"
    )
    assert not list(Path("/tmp").glob("lacuna-sandbox-*"))


def test_a_process_that_the_audit_hook_misses_does_not_outlive_its_run(sandbox: Sandbox) -> None:
    if "pid" not in sandbox.isolation:
        pytest.skip("this kernel grants no process namespace")
    # _posixsubprocess raises no audit event, so only the namespace (or the process limit) stops it.
    marker = f"lacuna-marker-{os.getpid()}"
    start = (
        "import _posixsubprocess as p, os\n"
        "r, w = os.pipe()\n"
        f"p.fork_exec([b'/bin/sh', b'-c', b'sleep 60 # {marker}'], [b'/bin/sh'], True, (w,), None, None,\n"
        "    -1, -1, -1, -1, -1, -1, r, w, True, False, 0, None, None, None, -1, None, False)\n"
    )
    assert sandbox.run(start).verdict == "passed"  # the process could be started
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if marker.encode() in command and b"sleep" in command]


@pytest.mark.skipif(not DEV_DATA.exists(), reason="the development problems are not beside this checkout")
def test_every_canonical_solution_passes_and_an_empty_fill_mostly_fails(sandbox: Sandbox) -> None:
    problems = load_problems(DEV_DATA)
    outcomes = [(one.task_id, sandbox.run(one.program(one.canonical_solution)).verdict) for one in problems[::5]]
    assert [task for task, verdict in outcomes if verdict != "passed"] == []
    emptied = [sandbox.run(one.program("")).verdict for one in problems[::10]]
    assert emptied.count("passed") <= len(emptied) // 10
