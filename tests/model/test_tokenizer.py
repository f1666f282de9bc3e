import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import gguf_files, tiny

from lacuna_model.llama.library import library
from lacuna_model.llama.loading import LlamaTokenizer
from lacuna_model.loading.weights import GgufFile
from lacuna_model.tokenizer import SPLITS, Tokenizer, Vocabulary

ROOT = Path(__file__).parents[2]
TORCH = Path(torch.__file__).parent  # pinned, and it ships sources of several languages
FILES = [ROOT / name for name in ("pyproject.toml", "Makefile", "LICENSE", "tests/data/demo/vector.py")]
FILES += [Path(__file__), Path(json.__file__)]
FILES += [TORCH / f"utils/model_dump/{name}" for name in ("code.js", "skeleton.html")]
FILES += [TORCH / "include/c10/util/Optional.h", TORCH / "functional.py"]
TEXTS = {
    "javascript": "const f = async (x) => {\n\treturn `${x?.y ?? 0}` !== '';\n};\n",
    "c": "#include <stdio.h>\nint main(void) {\n  printf(\"%d\\n\", 0x1F << 3);\n  return 0;\n}\n",
    "rust": "fn main() -> Result<(), Box<dyn Error>> {\n    let v: Vec<u8> = vec![1, 2, 300_000];\n    Ok(())\n}\n",
    "html": '<a href="https://example.org/?q=1&amp;r=2">caf\u00e9</a>\n',
    "crlf": "def f():\r\n    return 1\r\n\r\n",
    "tabs": "if x:\n\t\ty = 1\n\t\t\tz = 2\t# end\n",
    "digits": "x = 1234567890 + 3.14159e-10 + 0b1010; n\u00b2 = \u0663\u0664\n",
    "long-spaces": "x" + " " * 300 + "y" + "\n" * 70 + " " * 33 + "\t" * 40,
    "trailing-space": "x =  ",
    "emoji": "s = '\U0001f600 \U0001f468\u200d\U0001f4bb \U0001f1e9\U0001f1ea'\n",
    "combining": "e\u0301 a\u0308 \u1100\u1161\u11a8 \u0915\u094d\u0937\n",
    "bom": "\ufeffimport os\n",
    "cjk": "\u540d\u524d = '\u6771\u4eac'  # \u30b3\u30e1\u30f3\u30c8\n",
    "special-names": "x = '<|im_end|>' + '<|endoftext|>' + '<|im_start|>user'\n",
    "contractions": "it's we'll I'VE don't\u2019s\n",
    "control": "a\x00b\x07c\x1b[0m\u2028\u0085\xa0d\u3000e",
    "empty": "",
}  # fmt: skip
COMMON = 20_000  # merges
# No surrogates: they are not text, and no UTF-8 file holds them.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
Encode = Callable[[str], list[int]]


@pytest.fixture(scope="module")
def llama_cpp(coder_path: Path) -> Encode:
    return llama_cpp_reading(coder_path)


@pytest.fixture(scope="module")
def common(gguf: GgufFile) -> Vocabulary:
    """The real vocabulary without most of its rarer tokens, of which reading all takes long."""
    real = gguf.vocabulary()
    merges = real.merges[:COMMON]
    tokens = (*real.tokens[:256], *map("".join, merges), *(real.tokens[id] for id in sorted(real.special_ids)))
    special_ids = range(len(tokens) - len(real.special_ids), len(tokens))
    return Vocabulary(tokens, merges, frozenset(special_ids), tokens.index(real.tokens[real.eog_id]))


@pytest.fixture(scope="module", params={patterns: name for name, patterns in SPLITS.items()}.values())
def both(
    request: pytest.FixtureRequest, common: Vocabulary, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Encode, Tokenizer]:
    """The tokenizers of llama.cpp and of Lacuna for a file with common tokens and each way to split text."""
    path = tmp_path_factory.mktemp("split") / "tiny.gguf"
    vocabulary = msgspec.structs.replace(common, pre=request.param)
    config = msgspec.structs.replace(tiny.CONFIG, vocab_size=len(vocabulary.tokens))
    gguf_files.write(path, config=config, vocabulary=vocabulary)
    return llama_cpp_reading(path), Tokenizer(GgufFile(path).vocabulary())


def llama_cpp_reading(path: Path) -> Encode:
    found = library()
    model = found("model_load_from_file", str(path).encode(), found("model_default_params"))
    return LlamaTokenizer(found, found("model_get_vocab", model), GgufFile(path).vocabulary())._plain


@pytest.mark.parametrize("name", [*TEXTS, *FILES], ids=str)
def test_ids_of_a_text_equal_those_of_llama_cpp(name: str | Path, llama_cpp: Encode, real_tokenizer: Tokenizer) -> None:
    text = TEXTS[name] if isinstance(name, str) else name.read_bytes().decode()
    assert real_tokenizer.encode(text) == llama_cpp(text)


PIECES = st.sampled_from([*"aB_ \n\t1é.(%'", "\r\n", "    ", "\U0001f600", "e\u0301", "'s", "<|im_end|>", "\u3000"])


@settings(deadline=None, max_examples=100)
@given(st.lists(PIECES, max_size=60).map("".join))
def test_ids_of_any_text_equal_those_of_llama_cpp(llama_cpp: Encode, real_tokenizer: Tokenizer, text: str) -> None:
    assert real_tokenizer.encode(text) == llama_cpp(text)


def test_every_way_to_split_text_gives_the_ids_of_llama_cpp(both: tuple[Encode, Tokenizer]) -> None:
    llama_cpp, ours = both
    for text in (*TEXTS.values(), *(file.read_bytes().decode() for file in FILES)):
        assert ours.encode(text) == llama_cpp(text)


@settings(deadline=None)
@given(ANY_TEXT)
def test_decoding_gives_back_the_text_with_the_real_vocabulary(real_tokenizer: Tokenizer, text: str) -> None:
    assert real_tokenizer.decode(real_tokenizer.encode(text)) == text


@pytest.mark.parametrize("name", tiny.SPECIALS)
def test_special_names_in_text_are_text(tokenizer: Tokenizer, real_tokenizer: Tokenizer, name: str) -> None:
    for one in (tokenizer, real_tokenizer):
        ids = one.encode(f"a{name}b")
        assert one.special_ids.isdisjoint(ids)
        assert one.decode(ids) == f"a{name}b"


@pytest.mark.parametrize(
    "prefix",
    [b"", b" ", b"        ", b"         ", b"\0", b"\0\0", b"\xff", b"\xe2\x80", b"function", b"functionality"],
)
def test_tokens_are_found_by_the_bytes_that_they_begin_with(real_tokenizer: Tokenizer, prefix: bytes) -> None:
    ids = set(range(real_tokenizer.vocab_size)) - real_tokenizer.special_ids
    expected = {token for token in ids if real_tokenizer.token_bytes(token).startswith(prefix)}
    assert set(real_tokenizer.starting_with(prefix).tolist()) == expected


def test_a_text_begins_a_token_if_a_longer_token_starts_with_it(real_tokenizer: Tokenizer) -> None:
    assert real_tokenizer.is_begun(b" retur")
    assert real_tokenizer.is_begun(b"")
    assert not real_tokenizer.is_begun(b" retux")
    longest = max(map(real_tokenizer.token_bytes, range(real_tokenizer.vocab_size)), key=len)
    assert not real_tokenizer.is_begun(longest)
