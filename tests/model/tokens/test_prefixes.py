import pytest

from lacuna_model.fim.loading import LoadedFim


@pytest.mark.parametrize("prefix", [b"d", b"de", b" ", b"    ", b"\n", b" def", b"\xf0", b"def"])
def test_exactly_the_tokens_that_begin_with_a_prefix_are_found(model: LoadedFim, prefix: bytes) -> None:
    tokenizer = model.tokenizer
    expected = {i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i).startswith(prefix)}
    assert set(model.prefixes.starting_with(prefix).tolist()) == expected
    assert expected


def test_the_due_text_is_the_part_of_a_prefix_that_tokens_have_not_written(model: LoadedFim) -> None:
    tokens = model.tokenizer.encode("def f")
    assert model.prefixes.left_of(b"def f(", []) == b"def f("
    assert model.prefixes.left_of(b"def f(", tokens) == b"("
    assert model.prefixes.left_of(b"def", tokens) == b""
    assert model.prefixes.left_of(b"", tokens) == b""
