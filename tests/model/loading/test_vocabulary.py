"""The tokenizer of a GGUF file, and the tokens of its fill-in-the-middle format."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from gguf import TokenType
from tests.model import gguf_files, tiny

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading.weights import GgufFile
from lacuna_model.tokenizer import FimTokens, Tokenizer, Vocabulary

SIZE = len(tiny.VOCABULARY.tokens)
QWEN = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
GRANITE = ("<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>")
DEEPSEEK = (
    "<\uff5cfim▁begin\uff5c>", "<\uff5cfim▁end\uff5c>", "<\uff5cfim▁hole\uff5c>", "<\uff5cend▁of▁sentence\uff5c>",
)  # fmt: skip


def read(path: Path, more: tuple[str, ...] = (), kind: TokenType = TokenType.CONTROL, **fields: Any) -> Vocabulary:
    """Writes a file with the tiny tokens and ``more`` tokens of type ``kind``; returns the vocabulary read from it."""
    vocabulary = msgspec.structs.replace(tiny.VOCABULARY, tokens=(*tiny.VOCABULARY.tokens, *more))
    kinds = dict.fromkeys(tiny.VOCABULARY.special_ids, TokenType.CONTROL) | dict.fromkeys(
        range(SIZE, SIZE + len(more)), kind
    )
    named = {f"tokenizer.ggml.{name}": value for name, value in fields.items()}
    gguf_files.write(path / "tiny.gguf", vocabulary=vocabulary, kinds=kinds, fields=named)
    return GgufFile(path / "tiny.gguf").vocabulary()


def test_a_written_vocabulary_is_read_back(tmp_path: Path) -> None:
    assert read(tmp_path) == tiny.VOCABULARY


def test_the_fim_format_of_qwen_is_found_by_its_token_names(tmp_path: Path) -> None:
    vocabulary = read(tmp_path, QWEN)
    prefix, middle, suffix, pad, repo, file_sep = range(SIZE, SIZE + 6)
    ends = frozenset({0, 2, prefix, middle, suffix, pad, repo, file_sep})
    assert vocabulary.fim == FimTokens(prefix, suffix, middle, ends, repo, file_sep)
    assert vocabulary.eog_id == 0
    assert ends <= vocabulary.special_ids


@pytest.mark.parametrize("kind", [TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.NORMAL])
@pytest.mark.parametrize("names", [GRANITE, DEEPSEEK], ids=["granite", "deepseek"])
def test_other_fim_formats_are_found_by_token_names(tmp_path: Path, names: tuple[str, ...], kind: TokenType) -> None:
    vocabulary = read(tmp_path, names, kind)
    prefix, middle, suffix, other = range(SIZE, SIZE + 4)
    assert vocabulary.fim == FimTokens(prefix, suffix, middle, frozenset({0, 2, prefix, middle, suffix, other}))
    tokenizer = Tokenizer(vocabulary)
    text = "".join(names)
    assert tokenizer.special_ids.isdisjoint(tokenizer.encode(text))
    assert {token: tokenizer.token_bytes(token) for token in (prefix, middle, suffix, other)} == dict.fromkeys(
        (prefix, middle, suffix, other), b""
    )


@pytest.mark.parametrize("names", [("fim_pre", "fim_suf", "fim_mid"), ("prefix", "suffix", "middle")])
def test_fim_tokens_in_the_metadata_outrank_token_names(tmp_path: Path, names: tuple[str, str, str]) -> None:
    more = (*QWEN[:3], "<a>", "<b>", "<c>")
    said = {f"{name}_token_id": SIZE + 3 + i for i, name in enumerate(names)}
    fim = read(tmp_path, more, **said).fim
    assert fim is not None
    assert (fim.prefix, fim.suffix, fim.middle) == (SIZE + 3, SIZE + 4, SIZE + 5)


def test_a_text_token_that_looks_like_an_end_token_stays_text(tmp_path: Path) -> None:
    """In Qwen2.5 ``</s>``, a closing tag of HTML, is a plain token."""
    vocabulary = read(tmp_path, (*QWEN, "</s>"), TokenType.NORMAL)
    assert vocabulary.fim is not None
    assert SIZE + 6 not in vocabulary.fim.ends | vocabulary.special_ids
    assert Tokenizer(vocabulary).token_bytes(SIZE + 6) == b"</s>"


def test_the_end_tokens_of_a_message_also_end_a_fill(tmp_path: Path) -> None:
    vocabulary = read(tmp_path, (*QWEN, "<stop>", "<turn>"), eos_token_id=SIZE + 6, eot_token_id=SIZE + 7)
    assert vocabulary.fim is not None
    assert {SIZE + 6, SIZE + 7} <= vocabulary.fim.ends
    assert vocabulary.eog_id == 0


def test_a_prompt_begins_with_the_bos_token_if_the_file_says_so(tmp_path: Path) -> None:
    for says, start in ((True, (1,)), (False, ()), (None, ())):
        fim = read(tmp_path, QWEN, bos_token_id=1, add_bos_token=says).fim
        assert fim is not None
        assert fim.start == start


def test_a_word_of_the_vocabulary_is_one_token_if_the_model_looks_words_up(tmp_path: Path) -> None:
    """``abc`` is a merge of ``a`` and ``bc``, but the merge ``ab`` comes first: only a word lookup gives ``abc``."""
    more, merges = ("ab", "bc", "abc"), (("a", "b"), ("b", "c"), ("a", "bc"))
    for pre, expected in (("llama-bpe", [SIZE + 2]), ("qwen2", [SIZE, tiny.VOCABULARY.tokens.index("c")])):
        vocabulary = msgspec.structs.replace(
            tiny.VOCABULARY, tokens=(*tiny.VOCABULARY.tokens, *more), merges=merges, pre=pre
        )
        gguf_files.write(tmp_path / "tiny.gguf", vocabulary=vocabulary)
        assert Tokenizer(GgufFile(tmp_path / "tiny.gguf").vocabulary()).encode("abc") == expected


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"model": "llama"}, r"tiny\.gguf has a 'llama' tokenizer; only byte-level BPE"),
    "split": ({"pre": "tekken"}, r"tiny\.gguf splits text in a way 'tekken'; known are qwen2, "),
    "no-split": ({"pre": None}, r"tiny\.gguf does not say how its tokenizer splits text"),
    "merges": ({"merges": ["ab"]}, r"the tokenizer of .*tiny\.gguf is damaged"),
    "types": ({"token_type": [1, 1]}, r"the tokenizer of .*tiny\.gguf is damaged"),
    "no-tokens": ({"tokens": None}, r"tiny\.gguf lacks the metadata field 'tokenizer\.ggml\.tokens'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_unknown_or_damaged_tokenizer_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    fields, message = REFUSED[case]
    with pytest.raises(WeightsError, match=message) as caught:
        read(tmp_path, **fields)
    assert "\n" not in str(caught.value)
