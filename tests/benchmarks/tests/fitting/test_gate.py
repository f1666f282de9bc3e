"""The fit of the gate: cursors in stretches of files, what counts as right, and the trees that are found."""

import random
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.fitting import cursors
from tests.benchmarks.fitting.cursors import Asked, Place, ask, requests
from tests.benchmarks.fitting.gate import cases, crossed, effect, fit, is_right
from tests.benchmarks.records import Records
from tests.model.fim import tiny_fim

from lacuna_model.decode.gate import Gate, beginnings
from lacuna_model.engine import Engine
from training.packages import CorpusError
from training.stored import Document

PYTHON = "".join(f"def f{i}(größe):\n    # a note\n    return max(größe + {i}, [0])\n\n\n" for i in range(12))
GO = "".join(f"func f{i}(größe int) int {{\n\treturn größe + {i}\n}}\n\n" for i in range(12))
DOCUMENTS = [
    Document(package="p", version="1", licence="MIT", path=path, language=language, text=text)
    for path, language, text in (("p/a.py", "python", PYTHON), ("p/a.go", "go", GO))
]


@pytest.mark.parametrize("seed", range(3))
def test_a_cursor_stands_in_code_and_its_file_lacks_what_is_still_to_be_typed(seed: int) -> None:
    found = list(islice(requests(DOCUMENTS, random.Random(seed)), 12))
    assert found == list(islice(requests(DOCUMENTS, random.Random(seed)), 12))
    for place, request in found:
        text = next(one.text for one in DOCUMENTS if one.language == place.language)
        lines = text.split("\n")
        (region,) = request.regions
        assert "note" not in lines[place.row]
        assert place.row < place.stop
        whole = request.filled(["\n".join(place.truth(text).split("\n")[:1])])
        assert text.startswith(whole.split("\n" + "\n".join(lines[place.stop :]))[0].removesuffix(place.closers))
        assert request.text.encode()[region.end :].decode().startswith(place.closers + "\n")
        assert request.is_open_ended


def asked(fill: str, closers: str = "", column: int = 4, row: int = 0, package: str = "p", sure: float = -0.5) -> Asked:
    """A fill that the model wrote at once, as a token for each character."""
    place = Place(language="python", package=package, path="p/a.py", row=row, column=column, stop=99, closers=closers)
    return Asked(place, "m", False, fill, tuple((one, sure, 1.0) for one in fill), (sure, 1.0))


@pytest.mark.parametrize(
    ("fill", "truth", "right"),
    [
        ("total = sum(x)", "total = sum(x)\nreturn", [True, True, True, True, True, True]),
        ("total = min(x)", "total = sum(x)", [True, True, False, False, False, False]),
        ("a\nb", "a  \nb\nc", [True, True]),
        ("a\nb", "a\nc", [True, False]),
    ],
)
def test_a_beginning_is_right_if_its_words_or_lines_are_what_was_typed(
    fill: str, truth: str, right: list[bool]
) -> None:
    assert [is_right(asked(fill), one, truth) for one in beginnings(fill)] == right


def test_the_fit_finds_what_separates_right_fills_from_wrong_ones() -> None:
    """The model is sure where it is right: only then a package's suggestions are worth showing."""
    documents = [msgspec.structs.replace(DOCUMENTS[0], package=f"p{number}") for number in range(5)]
    rng = random.Random(0)
    found = []
    for number in range(600):
        row = 5 * rng.randrange(12)
        right = rng.random() < 0.5
        fill = f"f{row // 5}(größe):" if right else "g(x):"
        found.append(asked(fill, row=row, package=f"p{number % 5}", sure=rng.uniform(-0.2, 0) - 2 * (not right)))
    every = cases(found, documents)
    judgements = crossed(every)
    shown = effect(every, judgements, 0.5)
    assert shown.shown == shown.right > 250
    assert shown.wrong == 0
    assert effect(every, judgements, 0.0).wrong > 500
    gate = msgspec.json.decode(msgspec.json.encode(fit(every)), type=Gate)
    again = [case.judged_by(gate) for case in every]
    assert effect(every, again, 0.5).right >= shown.right


def test_records_are_added_until_there_are_enough_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "MAX_TOKENS", 6)
    monkeypatch.setattr(cursors, "TOGETHER", 2)
    engine = Engine(tiny_fim.loaded())
    for count in (3, 5):
        with Records(tmp_path / "cursors.jsonl", Asked) as records:
            ask(DOCUMENTS, engine, records, count)
            assert len(records.found) == count
    assert all(one.model == engine.model.name for one in records.found)
    with pytest.raises(CorpusError, match="is not in the corpus"):
        cases([asked("x", package="q")], DOCUMENTS)
