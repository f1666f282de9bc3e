import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmarks.editor.typing import asking, person, processor
from tests.benchmarks.editor.typing.main import PLUGIN
from tests.benchmarks.editor.typing.stretches import Stretch, cursors, stretches
from tests.benchmarks.records import Records
from tests.lsp.service import Daemon

NVIM = Path(sys.executable).parent / "nvim"
CODE = Stretch(
    Path("code.py"),
    ("def f(values):", "    total = 0"),
    ('    print("the sum of all", g(values, total))', "    # what is known", "", "    return total"),
    ("", "f([1])"),
)


@pytest.fixture
def stretch(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stretch:
    """A line that the service suggests."""
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, daemon.environment[name])
    daemon.plan(fills=["return total"])
    (tmp_path / "code.py").write_text("def f(a):\n    total = a\n    return total\n\nf(1)\n")
    (tmp_path / "all.jsonl").write_text(json.dumps({"path": "code.py", "first": 2, "last": 3}))
    (found,) = stretches(tmp_path / "all.jsonl")
    return found


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


async def test_suggestions_are_asked_for_and_judged_without_an_editor(stretch: Stretch) -> None:
    found = await asking.ask([stretch], {"minConfidence": 0}, Records(None, asking.Asked))
    rows = {row["what"]: row for row in asking.rows(found)}
    start = rows["line start"]
    assert (start["cursors"], start["shown"], start["right"]) == (1, 1, 1)
    assert rows["in a line"]["right"] == 0
    assert rows["all"]["cursors"] == rows["python"]["cursors"] == len(found)


async def test_a_person_takes_the_line_that_they_were_about_to_type(stretch: Stretch) -> None:
    pace, records = person.Pace(0.01, 20.0), Records(None, person.Typed)
    (typed,) = await person.type_all([stretch], [person.lacuna(PLUGIN)], str(NVIM), pace, records)
    assert (typed.lines, typed.characters) == (1, len("return total"))
    assert (typed.taken, typed.keys) == (1, 1)
    assert typed.right >= 1
    (row,) = person.rows([typed])
    assert (row["what"], row["saved"]) == ("python", 100 - 100 * typed.keys / typed.characters)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_processor_time_of_a_program_is_that_of_what_it_starts_too() -> None:
    script = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert processor.seconds([os.getpid()]) >= 0.5
