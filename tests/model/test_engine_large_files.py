"""Fills in a file of 8,000 lines: what is done for a key does not grow with the file, and the fills are the same."""

import re
from typing import Any

import pytest
from tests.model.large_files import NAMES, bodies, large

from lacuna_model.core.context import WindowOptions
from lacuna_model.core.params import FillGaps, InfillRequest, InfillResult, ReadContext, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.languages.parsing import Parser
from lacuna_model.prior.index import IndexedDocuments
from lacuna_model.tokenizer import Tokenizer

LINES = 8000
KINDS = [("python", True), ("python", False), ("typescript", True), ("c", False)]
WINDOW = WindowOptions(before=160, after=80, snippets=40)


def asked(text: str, at: int, language: str, *, ahead: bool = False, is_open: bool = True) -> InfillRequest:
    offset = len(text[:at].encode())
    task = ReadContext() if ahead else FillGaps(open=is_open)
    return InfillRequest(text, (Region(offset, offset, max_tokens=8),), task, path=NAMES[language])


def part_of(text: str, at: int) -> tuple[str, int]:
    """The lines around a place, a few hundred; they begin and end with a definition, and the place in them."""
    edges = [match.end() for match in re.finditer(r"\n\n(?=[A-Za-z/])", text)]
    begin = max((edge for edge in edges if edge <= at - 12_000), default=0)
    end = min((edge for edge in edges if edge >= at + 12_000), default=len(text))
    return text[begin:end], at - begin


class Counts:
    """Bytes that were encoded and parsed, and tokens that were sorted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.encoded = self.parsed = self.sorted = 0
        encode, parsed, made = Tokenizer.encode, Parser._parsed, IndexedDocuments.__init__

        def encoding(tokenizer: Tokenizer, text: str) -> list[int]:
            self.encoded += len(text)
            return encode(tokenizer, text)

        def parsing(parser: Parser, text: bytes, *rest: Any) -> Any:
            self.parsed += len(text)
            return parsed(parser, text, *rest)

        def sorting(documents: IndexedDocuments[Any], data: bytes, *rest: Any) -> None:
            self.sorted += len(data) // 2
            made(documents, data, *rest)

        monkeypatch.setattr(Tokenizer, "encode", encoding)
        monkeypatch.setattr(Parser, "_parsed", parsing)
        monkeypatch.setattr(IndexedDocuments, "__init__", sorting)

    def clear(self) -> None:
        self.encoded = self.parsed = self.sorted = 0


@pytest.mark.parametrize(("language", "is_open"), KINDS)
def test_a_key_costs_no_more_than_in_a_part_of_the_file(
    model: LoadedFim, monkeypatch: pytest.MonkeyPatch, language: str, is_open: bool
) -> None:
    text = large(language, LINES)
    for at in bodies(text, language)[1:]:
        spent = []
        for shown, place in ((text, at), part_of(text, at)):
            engine = Engine(model, window=WINDOW)
            engine.fill(asked(shown, place, language, ahead=True))
            engine.fill(asked(shown, place, language, is_open=is_open))
            counts = Counts(monkeypatch)
            for number in (1, 2):
                typed = shown[:place] + "x" * number + shown[place:]
                engine.fill(asked(typed, place + number, language, is_open=is_open))
            monkeypatch.undo()
            spent.append(counts)
        large_one, small = spent
        assert large_one.encoded <= small.encoded + 40_000
        assert large_one.sorted <= small.sorted + 40_000
        assert large_one.parsed <= 4 * small.parsed + 100_000


@pytest.mark.parametrize(("language", "is_open"), KINDS)
def test_fills_anywhere_are_those_of_a_part_of_the_file(model: LoadedFim, language: str, is_open: bool) -> None:
    text = large(language, LINES)

    def fill(shown: str, place: int) -> InfillResult:
        return Engine(model, window=WINDOW).fill(asked(shown, place, language, is_open=is_open))

    def with_lines(message: str, above: int) -> str:
        return re.sub(r"(?<=near line )\d+", lambda line: str(above + int(line[0])), message)

    for at in bodies(text, language):
        part, place = part_of(text, at)
        found, wanted = fill(text, at), fill(part, place)
        message = with_lines(wanted.message, text.count("\n", 0, at - place))
        assert (found.status, found.fills, found.message) == (wanted.status, wanted.fills, message)
        assert found.stats.context_tokens == wanted.stats.context_tokens
        assert found.stats.constrained


def test_the_first_fill_of_a_large_file_indexes_a_part_and_a_resting_cursor_the_rest(
    model: LoadedFim, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = large("python", LINES)
    (_, at, _), engine, counts = bodies(text, "python"), Engine(model, window=WINDOW), Counts(monkeypatch)
    engine.fill(asked(text, at, "python"))
    assert counts.encoded < 100_000
    steps = engine.stream(asked(text, at, "python", ahead=True))
    most = 0
    counts.clear()
    for _ in steps:
        most, _ = max(most, counts.encoded), counts.clear()
    assert most < 60_000
    counts.clear()
    engine.fill(asked(text, at, "python", ahead=True))
    assert counts.encoded < 60_000
