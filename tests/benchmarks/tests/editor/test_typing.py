import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmarks.commands.typing import PLUGIN
from tests.benchmarks.editor.typing import asking, jumping, person, processor
from tests.benchmarks.editor.typing.person import Pace
from tests.benchmarks.editor.typing.stretches import Stretch, cursors, stretches
from tests.lsp.service import Daemon

from lacuna_model.core.errors import RequestError
from lacuna_server.client.starting import Address

NVIM = Path(sys.executable).parent / "nvim"
CODE = Stretch(
    Path("code.py"),
    ("def f(values):", "    total = 0"),
    ('    print("the sum of all", g(values, total))', "    # what is known", "", "    return total"),
    ("", "f([1])"),
)


@pytest.fixture
def environment(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, daemon.environment[name])


def test_every_cursor_lies_in_the_file_that_is_being_typed() -> None:
    found = {cursor.kind: cursor for cursor in reversed(list(cursors(CODE)))}
    above = "def f(values):\n    total = 0\n"
    assert found["line start"].before == above + "    "
    assert found["line start"].after == "\n\nf([1])"
    assert found["line start"].wanted == CODE.lines[0].strip()
    assert found["in a line"].before + found["in a line"].wanted == above + CODE.lines[0]
    assert (found["in a string"].after[:3], found["in a string"].wanted) == ('")\n', "sum of all")
    assert (found["in brackets"].after[:3], found["in brackets"].wanted) == ("))\n", "values, total")
    assert found["in a comment"].wanted == "s known"
    assert found["blank line"].after.startswith("\n    # what is known\n\n    return total\n")


@pytest.mark.parametrize("line", ["no json", '{"path": "a.py"}', '{"path": "b.py", "first": 0, "last": 1}',
                                  '{"path": "a.py", "first": 1, "last": 9}'])  # fmt: skip
def test_a_stretch_that_is_no_part_of_a_file_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    (tmp_path / "all.jsonl").write_text(line)
    with pytest.raises(RequestError, match=r"all\.jsonl"):
        stretches(tmp_path / "all.jsonl")


@pytest.mark.usefixtures("environment")
async def test_suggestions_are_asked_for_and_judged_without_an_editor(daemon: Daemon, tmp_path: Path) -> None:
    daemon.plan(fills=["return total"])
    (tmp_path / "code.py").write_text("def f(a):\n    total = a\n    return total\n\nf(1)\n")
    (tmp_path / "all.jsonl").write_text(json.dumps({"path": "code.py", "first": 2, "last": 3}))
    address = Address(daemon.running.url, daemon.running.token)
    found = await asking.ask(stretches(tmp_path / "all.jsonl"), address, {"minConfidence": 0}, lambda what: None)
    rows = {row.what: row for row in asking.rows(found)}
    assert (rows["line start"].cursors, rows["line start"].shown, rows["line start"].right) == (1, 1, 1)
    assert rows["line start"].foreign == 0
    assert rows["in a line"].right == 0
    assert rows["all"].cursors == sum(rows[kind].cursors for kind in ("line start", "in a line", "blank line"))


@pytest.mark.usefixtures("environment")
async def test_a_person_takes_the_line_that_they_were_about_to_type(daemon: Daemon, tmp_path: Path) -> None:
    daemon.plan(fills=["return total"])
    (tmp_path / "code.py").write_text("def f(a):\n    total = a\n    return total\n")
    (tmp_path / "all.jsonl").write_text(json.dumps({"path": "code.py", "first": 2, "last": 3}))
    chosen = stretches(tmp_path / "all.jsonl")
    plugins = [person.lacuna(PLUGIN)]
    (typed,) = await person.type_all(chosen, plugins, str(NVIM), Pace(0.01, 20.0), lambda what: None)
    assert (typed.lines, typed.characters) == (1, len("return total"))
    assert (typed.taken, typed.keys) == (1, 1)
    assert typed.right >= 1
    row = list(person.rows([typed]))[-1]
    assert (row.what, row.saved) == ("all", round(100 - 100 * typed.keys / typed.characters, 1))
    assert row.cpu_s == round(100 * typed.cpu_s / typed.characters, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_processor_time_of_a_program_is_that_of_what_it_starts_too() -> None:
    script = "import os, time\nwhile time.process_time() < 0.5: pass\nos.write(1, b'.'), os.read(0, 1)"
    command = [sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"]
    with subprocess.Popen([*command, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        before = processor.seconds([os.getpid()])
        assert program.stdout.read(1)
        assert processor.seconds([program.pid]) >= 0.5
        program.stdin.write(b".")
    assert processor.seconds([program.pid]) == 0
    assert processor.seconds([os.getpid()]) >= max(before, 0.5)


@pytest.mark.usefixtures("environment")
async def test_waits_are_taken_at_a_start_and_after_jumps_in_two_files(daemon: Daemon, tmp_path: Path) -> None:
    daemon.plan(fills=["return total"])
    files = [tmp_path / "one.py", tmp_path / "two.py"]
    for file in files:
        file.write_text("def f(a):\n    total = a + 1\n    return a\n" + "\n" * 40 + "def g(b):\n    return b + 1\n")
    found = await jumping.jump(files, person.lacuna(PLUGIN, minConfidence=0), str(NVIM), 1, lambda what: None)
    assert [(one.what, one.file, one.row) for one in found] == [
        ("a cold start", "one.py", 1),
        ("the same file", "one.py", 44),
        ("another file", "two.py", 44),
    ]
    assert all(one.seconds is not None for one in found)
    assert [(row.what, row.places, row.shown) for row in jumping.rows(found)][1] == ("the same file", 1, 1)
