import pytest

from lacuna_model.fim.loading import LoadedFim


@pytest.mark.parametrize("prefix", [b"d", b"de", b" ", b"    ", b"\n", b" def", b"\xf0", b"def"])
def test_exactly_the_tokens_that_begin_with_a_prefix_are_found(model: LoadedFim, prefix: bytes) -> None:
    tokenizer = model.tokenizer
    expected = {i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i).startswith(prefix)}
    assert set(model.prefixes.starting_with(prefix).tolist()) == expected
    assert expected


@pytest.mark.parametrize("prefix", [b" ", b"\t", b"    "])
def test_tokens_that_go_on_with_a_word_have_no_blank_behind_the_prefix(model: LoadedFim, prefix: bytes) -> None:
    flush, every = (
        set(find(prefix).tolist()) for find in (model.prefixes.starting_flush, model.prefixes.starting_with)
    )
    behind = {token: model.tokenizer.token_bytes(token)[len(prefix) :] for token in every}
    assert flush == {token for token, rest in behind.items() if not rest.startswith((b" ", b"\t"))}


def test_special_tokens_are_never_found(model: LoadedFim) -> None:
    found = set(model.prefixes.starting_with(b"").tolist())
    assert found == set(range(model.tokenizer.vocab_size)) - model.tokenizer.special_ids


def test_no_token_is_found_for_a_prefix_that_none_begins_with(model: LoadedFim) -> None:
    assert model.prefixes.starting_with(b"no token").tolist() == []


def test_the_due_text_is_the_part_of_a_prefix_that_tokens_have_not_written(model: LoadedFim) -> None:
    tokens = model.tokenizer.encode("def f")
    assert model.prefixes.left_of(b"def f(", []) == b"def f("
    assert model.prefixes.left_of(b"def f(", tokens) == b"("
    assert model.prefixes.left_of(b"def", tokens) == b""
    assert model.prefixes.left_of(b"", tokens) == b""
