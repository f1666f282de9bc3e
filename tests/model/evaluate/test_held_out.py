import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.errors import LacunaError
from lacuna_model.evaluate.held_out import held_out_main, restore, summarise
from lacuna_model.evaluate.held_out_cases import SHAPES, sample_cases
from lacuna_model.train.documents import Document, DocumentWriter

from .fakes import Canned

CODE = '"""A module.\n\nOf several lines of prose.\n"""\n' + "".join(
    f"def function_{i}(count):\n    # a note\n    größe = count * {i}\n    return größe + 1\n\n\n" for i in range(12)
)


def document(text: str = CODE, language: str = "python") -> Document:
    return Document(package="p", version="1", licence="MIT", path="p/m.py", language=language, text=text)


@settings(deadline=None)  # other programs may hold the cores
@given(seed=st.integers(min_value=0, max_value=10_000))
def test_gaps_hold_code_and_their_truths_restore_the_file(seed: int) -> None:
    cases = sample_cases([document()], 6, seed)
    assert cases == sample_cases([document()], 6, seed)
    assert [case.shape for case in cases] == [*SHAPES, *SHAPES]
    for case in cases:
        assert case.document(case.truths) == CODE
        starts = [region.start for region in case.request.regions]
        assert starts == sorted(set(starts))
        assert len(starts) == 1 if case.shape != "gaps" else 1 <= len(starts) <= 4
        assert all("note" not in truth.split("\n")[0] and "prose" not in truth for truth in case.truths)
        assert all(not truth[0].isspace() and not truth.endswith("\n") for truth in case.truths)


def test_files_too_short_are_refused() -> None:
    with pytest.raises(LacunaError, match="no file long enough"):
        sample_cases([document("x = 1\n")], 3, 0)


def test_exact_match_and_similarity() -> None:
    cases = sample_cases([document()], 9, 1)
    truths = {case.request.text: case.truths for case in cases}
    right = Canned("right", lambda *_: "")
    right.fill = lambda request: Canned("", lambda _, i: truths[request.text][i]).fill(request)  # type: ignore[method-assign]
    restored = [restore(case, right) for case in cases]
    assert all(all(one.exact) and min(one.similarity) == 1.0 and one.syntax_valid for one in restored)
    half = restore(cases[0], Canned("half", lambda *_: cases[0].truths[0][: len(cases[0].truths[0]) // 2]))
    assert not half.exact[0]
    assert 0.4 < half.similarity[0] < 0.9
    scores = summarise(restored)["right"]
    assert list(scores) == list(SHAPES)
    assert scores["line"].exact_match == scores["gaps"].similarity == 1.0
    assert scores["gaps"].gaps > scores["gaps"].cases


def test_the_corpus_is_read_and_the_report_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "held_out.jsonl.zst"
    with DocumentWriter(corpus) as writer:
        for one in (document(), document("def broken(:\n" * 40), document(language="c")):
            writer.write(one)
    report = held_out_main(
        corpus, [Canned("lacuna", lambda *_: "x")], num_cases=6, as_json=True, records=tmp_path / "r"
    )
    assert json.loads(capsys.readouterr().out)["engines"].keys() == {"lacuna"}
    assert report.engines["lacuna"]["line"].exact_match == 0.0
    assert len((tmp_path / "r").read_bytes().splitlines()) == 6
    held_out_main(corpus, [Canned("lacuna", lambda *_: "x")], num_cases=3)
    assert "similarity" in capsys.readouterr().out
