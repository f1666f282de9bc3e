import subprocess
from pathlib import Path

import pytest
from tests.server.refactor.bench import Bench

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.gather import by_query, gather, query_names
from lacuna_server.refactor.places.matching import WHOLE, PatternMatch
from lacuna_server.refactor.places.source import Source

CODE = """\
# é 👍
get("é", a=1)
get()
other(get(get(x), *y))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "a.py": "a\n",
        "lib/b.py": "b\n",
        "lib/c.js": "c\n",
        "build/d.py": "d\n",
        "node_modules/e.js": "e\n",
        "notes.txt": "f\n",
        "keys.py": f"token = '{'ghp_' + 'a1B2' * 9}'\n",
        ".gitignore": "build/\n",
        "credentials.json": "{}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.py").write_bytes(b"caf\xe9\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*places: str, languages: tuple[str, ...] = ()) -> list[str]:
    return sorted(source.path for source in gather(places, languages)[0])


def test_files_that_are_left_out_are_reported(project: Path) -> None:
    assert sorted(gather(["."])[1]) == [
        "keys.py is generated or holds a credential",
        "latin.py is not UTF-8 text: byte 0xe9 at offset 3",
    ]


def test_a_file_that_is_named_explicitly_is_included(project: Path) -> None:
    assert names("build/d.py", "keys.py") == ["build/d.py", "keys.py"]
    (forced,), _ = gather(["notes.txt"], forced="python")
    assert forced.language.name == "python"
    with pytest.raises(RequestError, match=r"notes.txt: no language is known"):
        gather(["notes.txt"])
    with pytest.raises(RequestError, match="not UTF-8"):
        gather(["latin.py"])
    with pytest.raises(RequestError, match="nowhere: no such file or folder"):
        gather(["nowhere"])
    assert gather(["nowhere"], opened={}) == ([], ("nowhere: no such file or folder",))
    with pytest.raises(RequestError, match="unknown language 'klingon'"):
        gather(["a.py"], forced="klingon")


def piece(source: Source, match: PatternMatch, name: str) -> str:
    return source.slice(*match.captures[name])


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_pattern_finds_places_and_names_their_pieces(bench: Bench, start: str, newline: str) -> None:
    source = bench.source(start + CODE.replace("\n", newline))
    matches = bench.matches(source, "get($$$ARGS)")
    found = ['get("é", a=1)', "get()", "get(get(x), *y)", "get(x)"]
    assert [source.slice(match.start, match.end) for match in matches] == found
    assert [piece(source, match, "ARGS") for match in matches] == ['"é", a=1', "", "get(x), *y", "x"]
    assert piece(source, matches[0], WHOLE) == 'get("é", a=1)'


def test_a_query_replaces_or_inserts(bench: Bench) -> None:
    source = bench.source("def f(a, b):\n    return a\n")
    (place,) = by_query(source, "(return_statement (identifier) @value) @place")
    assert piece(source, place, "VALUE") == "a"
    assert source.slice(place.start, place.end) == "return a"
    (before,) = by_query(source, "(block (return_statement) @before)")
    assert before.start == before.end == source.data.index(b"return")
    (after,) = by_query(source, "(function_definition name: (_) @name parameters: (_) @after)")
    assert after.start == after.end == source.data.index(b":")
    assert query_names("(a) @x (b) @place") == {"X", "PLACE"}
