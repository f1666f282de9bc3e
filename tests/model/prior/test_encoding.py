import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lacuna_model.prior.encoding import LineEncoder
from lacuna_model.tokens.tokenizer import Tokenizer

# What lines begin and end with, put together at random: white space, line ends, digits, characters of several bytes.
PIECES = [
    "\n",
    "\r\n",
    "\r",
    " ",
    "    ",
    "\t",
    "x",
    "return",
    "1",
    "42",
    ")",
    "'s",
    "\u00e9",
    "\U0001f600",
    "\u00a0",
    "\u2028",
    "\x1c",
    ":",
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=20).map("".join)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS.map(lambda text: text.encode(errors="ignore").decode()))
def test_encoding_line_by_line_equals_encoding_at_once(real_tokenizer: Tokenizer, text: str) -> None:
    assert LineEncoder(real_tokenizer).encode(text).tolist() == real_tokenizer.encode(text)


@pytest.mark.parametrize(("fixture", "line"), [("tokenizer", "\nb = 5"), ("real_tokenizer", "b = 5\n")])
def test_an_unchanged_line_is_not_encoded_again(request: pytest.FixtureRequest, fixture: str, line: str) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(fixture)
    encoded: list[str] = []

    class Counting:
        vocab_size, fingerprint, encode_batch = tokenizer.vocab_size, tokenizer.fingerprint, tokenizer.encode_batch

        def encode(self, text: str) -> list[int]:
            encoded.append(text)
            return tokenizer.encode(text)

    encoder = LineEncoder(Counting())
    encoder.encode("a = 1\nb = 2\nc = 3\n")
    encoded.clear()
    assert encoder.encode("a = 1\nb = 5\nc = 3\n").tolist() == tokenizer.encode("a = 1\nb = 5\nc = 3\n")
    assert encoded == [line]
