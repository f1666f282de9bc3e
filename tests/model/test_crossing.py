import math

import pytest
import torch

from lacuna_model.crossing import Crossing, joined
from lacuna_model.prefixes import PrefixTable
from lacuna_model.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def prefixes(real_tokenizer: Tokenizer) -> PrefixTable:
    return PrefixTable(real_tokenizer)


def said(prefixes: PrefixTable, **probabilities: float) -> torch.Tensor:
    """Log-probabilities of these tokens, next to none for any other."""
    row = torch.full((49152,), 1e-9)
    for text, probability in probabilities.items():
        token = prefixes.token(text.encode())
        assert token is not None
        row[token] = probability
    return row.log()


@pytest.mark.parametrize("behind", [b")", b");", b"]\n", b'")', b"):\n"])
def test_tokens_across_the_end_are_those_of_natural_text(
    real_tokenizer: Tokenizer, prefixes: PrefixTable, behind: bytes
) -> None:
    crossing = Crossing.of(behind, prefixes)
    assert len(crossing.tokens)
    for token, beginning in zip(crossing.tokens.tolist(), crossing.beginnings.tolist(), strict=True):
        own = real_tokenizer.token_bytes(beginning)
        rest = real_tokenizer.token_bytes(token).removeprefix(own)
        assert own
        assert rest
        assert behind.startswith(rest)
        assert real_tokenizer.encode((own + behind).decode())[0] == token


@pytest.mark.parametrize("behind", [b"", b"\n", b" {", b"name)", b"\xc3\xa9"])
def test_words_and_white_space_are_never_crossed(prefixes: PrefixTable, behind: bytes) -> None:
    crossing = Crossing.of(behind, prefixes)
    assert not len(crossing.tokens)
    row = said(prefixes, x=1.0)
    assert crossing.credit(row, 0) is row
    assert float(crossing.ends_behind(5, 0, torch.tensor(-3.0))) == -3.0


def test_a_beginning_has_the_credit_of_tokens_across_the_end(prefixes: PrefixTable) -> None:
    crossing = Crossing.of(b")\n", prefixes)
    row = crossing.credit(said(prefixes, **{"))": 0.6, ")": 0.2, ",": 0.2}), 3).exp()
    closer, both = prefixes.token(b")"), prefixes.token(b"))")
    assert closer is not None
    assert float(row[closer]) == pytest.approx(0.8, abs=1e-3)
    assert float(row[both]) == pytest.approx(0.0, abs=1e-3)
    # Behind the closer the fill ends, but for the share in which it would have been a token of its own.
    ends = crossing.ends_behind(closer, 3, torch.tensor(math.log(0.1)))
    assert float(ends.exp()) == pytest.approx(0.75 + 0.25 * 0.1, abs=1e-3)
    assert float(crossing.ends_behind(closer, 4, torch.tensor(-2.0))) == -2.0


def test_an_empty_fill_gets_no_credit(prefixes: PrefixTable) -> None:
    crossing, opener = Crossing.of(b")", prefixes), prefixes.token(b"(")
    row = said(prefixes, **{"()": 0.7, "(": 0.3})
    assert float(crossing.credit(row, 0)[opener].exp()) == pytest.approx(1.0, abs=1e-3)
    assert float(crossing.credit(row, 0, opener)[opener].exp()) == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize(
    ("fill", "behind"), [(" f(a)", ");\n"), (' "é', '")'), (" x", " + y"), ("", ")\n"), (" x", "")]
)
def test_a_fill_and_what_is_behind_it_are_read_as_natural_text(
    real_tokenizer: Tokenizer, fill: str, behind: str
) -> None:
    tokens = real_tokenizer.encode(fill), real_tokenizer.encode(behind) or [real_tokenizer.document_id]
    natural = real_tokenizer.encode(fill + behind) if behind else [*tokens[0], real_tokenizer.document_id]
    assert joined(*tokens, real_tokenizer) == natural
    cut = real_tokenizer.encode("🙂")[:1]
    assert joined(tokens[0], cut, real_tokenizer) == [*tokens[0], *cut]
    if fill:
        assert joined(*tokens, real_tokenizer, healed=fill.encode()) == [*tokens[0], *tokens[1]]
