import os
from pathlib import Path

import pytest
from tests.benchmarks.tasks.dataset import Problem, load_problems
from tests.benchmarks.tasks.sandbox import Outcome, run

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
    "os-exit": "import os; os._exit(0)",
    "kills-itself": "import signal; signal.raise_signal(9)",
    "crashes": "import faulthandler; faulthandler._sigsegv()",
    "fork": "import os; os.fork()",
    "subprocess": "import subprocess; subprocess.run(['true'])",
    "socket": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "appends": "open('/tmp/lacuna-note.txt', 'a')",
    "low-level-write": "import os; os.open('note.txt', os.O_CREAT | os.O_WRONLY)",
    "removes": "import os; os.remove('/tmp/lacuna-none')",
    "ctypes": "import ctypes; ctypes.string_at(0)",
    "huge-memory": "z = bytearray(1 << 33)",
    "loud": "print('loud' * 100_000); input()",
    "swallows": 'return 1\n"""',
}


def fill(text: str) -> str:
    return PROBLEM.program(f"    {text}\n    y = 2 * x\n")


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("text", MISBEHAVIOURS.values(), ids=MISBEHAVIOURS)
def test_misbehaviour_is_a_failure(namespaces: bool, text: str) -> None:
    assert run(fill(text), namespaces=namespaces).verdict == "failed"


@pytest.mark.parametrize("namespaces", [True, False])
def test_a_right_fill_passes_in_an_empty_folder_and_a_wrong_one_fails(namespaces: bool) -> None:
    right = fill("import os; assert os.listdir() == [] and 'lacuna-sandbox-' in os.getcwd()")
    assert run(right, namespaces=namespaces) == Outcome("passed")
    assert run(PROBLEM.program("    y = 3 * x\n"), namespaces=namespaces) == Outcome("failed", "AssertionError")
    assert not list(Path("/tmp").glob("lacuna-sandbox-*"))


def test_a_program_that_does_not_end_times_out() -> None:
    assert run(fill("import time; time.sleep(60)"), wall_s=1) == Outcome("timeout")
    assert run(fill("10 ** 10 ** 9")) == Outcome("timeout")


def test_a_process_that_the_audit_hook_misses_does_not_outlive_its_run() -> None:
    # _posixsubprocess raises no audit event, so only the namespace (or the process limit) stops it.
    marker = f"lacuna-marker-{os.getpid()}"
    start = (
        "import _posixsubprocess as p, os\n"
        "r, w = os.pipe()\n"
        f"p.fork_exec([b'/bin/sh', b'-c', b'sleep 60 # {marker}'], [b'/bin/sh'], True, (w,), None, None,\n"
        "    -1, -1, -1, -1, -1, -1, r, w, True, False, 0, None, None, None, -1, None, False)\n"
    )
    run(start, wall_s=2)
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if marker.encode() in command and b"sleep" in command]


@pytest.mark.skipif(not DEV_DATA.exists(), reason="the development problems are not beside this checkout")
def test_canonical_solutions_pass_and_empty_fills_mostly_fail() -> None:
    problems = load_problems(DEV_DATA)
    outcomes = [(one.task_id, run(one.program(one.canonical_solution)).verdict) for one in problems[::25]]
    assert [task for task, verdict in outcomes if verdict != "passed"] == []
    emptied = [run(one.program("")).verdict for one in problems[::25]]
    assert emptied.count("passed") <= len(emptied) // 10
