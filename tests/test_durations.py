"""The tables of tests' durations."""

from pathlib import Path

from tests.durations import write

RUN = """<testsuites><testsuite>
<testcase classname="tests.lsp.test_edit" name="test_one[a.b]" time="1.6"/>
<testcase classname="tests.lsp.test_edit" name="test_one[b]" time="2.0"/>
<testcase classname="tests.model.fim.test_loading.TestFile" name="test_two" time="10.2"><skipped/></testcase>
<testcase classname="tests.test_tree" name="test_three" time="0.2"/>
</testsuite></testsuites>"""
TABLES = """4 tests, 14 s in all processes. The slowest folders and files:

| Folder | tests | s |
|---|---|---|
| `tests/model/fim` | 1 | 10 |
| `tests/lsp` | 2 | 4 |
| `tests` | 1 | 0 |

| File | tests | s |
|---|---|---|
| `tests/model/fim/test_loading.py` | 1 | 10 |
| `tests/lsp/test_edit.py` | 2 | 4 |
| `tests/test_tree.py` | 1 | 0 |
"""


def test_the_tables_of_a_run_take_the_place_of_those_of_another(tmp_path: Path) -> None:
    page, run = tmp_path / "README.md", tmp_path / "run.xml"
    page.write_text("# Tests\n\n## Durations\n\nof another run\n")
    run.write_text(RUN)
    for _ in range(2):
        write(page, run)
        assert page.read_text() == f"# Tests\n\n## Durations\n\n{TABLES}"
