import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.model.scripted import Scripted

from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken
from lacuna_model.core.context import Gap
from lacuna_model.decode.denoise import denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.workspace import known_first as module
from lacuna_model.workspace.known_first import KnownFirst

WORD = re.compile(r"\w+")


class Named:
    """Judges that only some names exist."""

    def __init__(self, *names: str) -> None:
        self.names, self.instead = names, list[str]()

    def nowhere(self, fill: str, since: int) -> int | None:
        words = (one for one in WORD.finditer(fill) if since <= one.end() < len(fill))
        return next((one.start() for one in words if one[0] not in self.names), None)

    def leads(self, fill: str, start: int) -> bool:
        name = WORD.match(fill, start)
        if name is None:
            return False
        return name[0] in self.names if name.end() < len(fill) else any(one.startswith(name[0]) for one in self.names)

    def ends(self, fill: str, start: int) -> bool:
        name = WORD.match(fill, start)
        return name is not None and name.end() < len(fill)

    def wrote_instead(self, before: str) -> None:
        self.instead.append(before)

    def ended(self, fill: str) -> str:
        return f"{fill}\n"


class Choosing(Scripted):
    """Reads one token in a pass, or several: the candidates that a function gives, each some nats below the first."""

    def __init__(self, tokenizer: Tokenizer, likely: Callable[[str], dict[str, float]], rows: int = 1) -> None:
        super().__init__(tokenizer, "", rows=rows)
        self._tokenizer, self._likely = tokenizer, likely

    def _run(self, fill: Fill, wanted: Sequence[int]) -> Run:
        written, ids, logp = list(fill.tokens), [], []
        for _ in range(self.rows):
            found = self._likely(self._tokenizer.decode_bytes(written).decode())
            tokens = [self._tokenizer.encode(text)[0] if text else self._tokenizer.eog_id for text in found]
            ids.append((tokens * 3)[:3])
            logp.append((list(found.values()) * 3)[:3])
            written.append(tokens[0])
            if tokens[0] == self._tokenizer.eog_id:
                break
        return Run(np.array(ids), np.array(logp, np.float32))


def likely(written: str) -> dict[str, float]:
    """The model writes ``name(value)``; its other candidates are ``total`` and, far below, ``size``."""
    follows = {"": "name", "total": "(", "size": "(", "name": "("}
    if written == "":
        return {"name": -0.5, "total": -1.5, "size": -9.0}
    if written in follows:
        return {follows[written]: -0.1, "=": -3.0}
    return {"value": -0.1, "x": -0.2} if written.endswith("(") else {")": -0.1} if written.endswith("e") else {"": 0.0}


def fill(tokenizer: Tokenizer, judge: Named, rows: int = 1, given: int = 0, inner: Constraint | None = None) -> str:
    reader = Choosing(tokenizer, likely, rows)
    constraint = KnownFirst(inner or Constraint(tokenizer), [judge], [given], tokenizer)
    fills = [Fill(Gap(0), 12)]
    for _ in denoise(reader, fills, [constraint], tokenizer, deadline=None):
        assert reader.passes < 40
    return fills[0].text(tokenizer) or ""


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_name_that_is_nowhere_gives_way_to_a_likely_one_that_exists(tokenizer: Tokenizer, rows: int) -> None:
    assert fill(tokenizer, Named("name", "value"), rows) == "name(value)"
    assert fill(tokenizer, Named("total", "value"), rows) == "total(value)"
    assert fill(tokenizer, Named("total", "x"), rows).startswith("total(x")


@pytest.mark.parametrize("rows", [1, 4])
def test_where_no_likely_token_leads_to_a_known_name_the_models_own_stands(tokenizer: Tokenizer, rows: int) -> None:
    assert fill(tokenizer, Named("size", "value"), rows) == "name(value)"
    assert fill(tokenizer, Named("totals", "value"), rows) == "name(value)"  # it may begin so, and ends otherwise
    assert fill(tokenizer, Named("names", "totals", "value"), rows) == "name(value)"
    assert fill(tokenizer, Named(), rows) == "name(value)"


@pytest.mark.parametrize(
    ("names", "instead"), [(("name", "value"), []), (("total", "value"), [""]), (("size", "x"), ["name("])]
)
def test_a_judge_learns_what_is_instead(tokenizer: Tokenizer, names: tuple[str, ...], instead: list[str]) -> None:
    judge = Named(*names)
    fill(tokenizer, judge)
    assert judge.instead == instead


def test_names_that_are_given_are_not_judged(tokenizer: Tokenizer) -> None:
    assert fill(tokenizer, Named("total", "value"), given=2) == "name(value)"


def test_a_fill_writes_a_bounded_number_of_names_again(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_AGAIN", 1)
    assert fill(tokenizer, Named("total", "x")).startswith("total(value")


class Refusing(Constraint):
    """Takes everything but a token."""

    def __init__(self, tokens: Tokenizer, refused: str) -> None:
        super().__init__(tokens)
        self._refused = tokens.encode(refused)[0]

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        if self._refused in run.tokens:
            return Taken(len(fills[gap].tokens) + run.tokens.index(self._refused), ends=True)
        return super().take(gap, fills, run)


def test_what_the_other_constraint_refuses_is_not_taken_for_a_known_name(tokenizer: Tokenizer) -> None:
    assert fill(tokenizer, Named("total", "value"), inner=Refusing(tokenizer, "total")) == "name(value)"


def test_an_end_behind_a_name_that_is_nowhere_is_refused_once(tokenizer: Tokenizer) -> None:
    constraint = KnownFirst(Constraint(tokenizer), [Named("total")], [0], tokenizer)
    ended = [FillSoFar(tuple(tokenizer.encode(text)), 12, ended=True) for text in ("name", "total")]
    assert [constraint.may_end(0, ended[0]) for _ in range(2)] == [False, True]
    assert constraint.may_end(0, ended[1])
