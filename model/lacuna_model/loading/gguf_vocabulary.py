"""What a GGUF file says of its tokenizer, and which of its tokens make a fill-in-the-middle prompt."""

from collections.abc import Mapping, Sequence

import gguf

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading.gguf_reader import GgufReader
from lacuna_model.tokens.tokenizer import SPLITS, FimTokens, Vocabulary, byte_alphabet

# Where a vocabulary names no other: <|endoftext|>, which SmolLM2 saw between documents, and <|im_end|>, which ends a
# message, here a gap; text never encodes to it.
DOCUMENT_ID = 0
EOG_ID = 2
# What is no text: token types of llama.cpp (gguf-py, ``TokenType``).
NO_TEXT = (gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED, gguf.TokenType.UNUSED)
# The parts of a fill-in-the-middle prompt: the metadata that name them, newest first, and the vocabularies' names
# (``llama-vocab.cpp``).
FIM_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prefix": (
        ("fim_pre_token_id", "prefix_token_id"),
        ("<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<\uff5cfim▁begin\uff5c>", "▁<PRE>", "<PRE>"),
    ),
    "suffix": (
        ("fim_suf_token_id", "suffix_token_id"),
        ("<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<\uff5cfim▁hole\uff5c>", "▁<SUF>", "<SUF>"),
    ),
    "middle": (
        ("fim_mid_token_id", "middle_token_id"),
        ("<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<\uff5cfim▁end\uff5c>", "▁<MID>", "<MID>"),
    ),
    "pad": (("fim_pad_token_id",), ("<|fim_pad|>", "<fim_pad>", "<fim-pad>")),
    "repo": (("fim_rep_token_id",), ("<|repo_name|>", "<|fim_repo|>", "<fim-repo>", "<repo_name>", "<reponame>")),
    "file_sep": (("fim_sep_token_id",), ("<|file_sep|>", "<file_sep>")),
}
# What else ends a fill, the end of a document first.
ENDS = (
    "<|endoftext|>", "<|end_of_text|>", "<\uff5cend▁of▁sentence\uff5c>", "<EOT>", "▁<EOT>", "</s>",
    "<|im_end|>", "<|eot_id|>", "<|EOT|>", "<|end|>",
)  # fmt: skip


def read_vocabulary(file: GgufReader) -> Vocabulary:
    """The tokenizer of a file; raises WeightsError where it is of a kind that is not known, or damaged."""
    kind, pre = file.field("tokenizer.ggml.model"), file.optional("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise WeightsError(f"{file.path} has a {kind!r} tokenizer; only byte-level BPE ('gpt2') is supported")
    if pre not in SPLITS:
        said = "does not say how its tokenizer splits text" if pre is None else f"splits text in a way {pre!r}"
        raise WeightsError(f"{file.path} {said}; known are {', '.join(SPLITS)}")
    tokens: list[str] = file.field("tokenizer.ggml.tokens")
    kinds: Sequence[int] = file.optional("tokenizer.ggml.token_type") or [gguf.TokenType.NORMAL] * len(tokens)
    pairs = [merge.split(" ", 1) for merge in file.field("tokenizer.ggml.merges")]
    if len(kinds) != len(tokens) or any(len(pair) != 2 for pair in pairs):
        raise WeightsError(f"the tokenizer of {file.path} is damaged; fetch the file again")
    spelled = byte_alphabet().keys()
    special = {i for i, token in enumerate(tokens) if kinds[i] in NO_TEXT or not spelled >= set(token)}
    ids = {token: i for i, token in enumerate(tokens)}
    ends = [ids[name] for name in ENDS if ids.get(name) in special]
    fim = _fim_tokens(file, ids, ends)
    last = [*ends, *_token(file, "eos_token_id", len(tokens)), EOG_ID][0]
    return Vocabulary(
        tokens=tuple(tokens),
        merges=tuple((left, right) for left, right in pairs),
        special_ids=frozenset(special | (fim.ends if fim else set())),
        document_id=last if fim else DOCUMENT_ID,
        eog_id=last if fim else EOG_ID,
        pre=pre,
        fim=fim,
    )


def _fim_tokens(file: GgufReader, ids: Mapping[str, int], ends: Sequence[int]) -> FimTokens | None:
    """The tokens of the fill-in-the-middle format; None where the model has none."""
    found: dict[str, int] = {}
    for part, (keys, names) in FIM_PARTS.items():
        said = [token for key in keys for token in _token(file, key, len(ids))]
        ways = [*said, *(ids[name] for name in names if name in ids)]
        if ways:
            found[part] = ways[0]
    if not {"prefix", "suffix", "middle"} <= found.keys():
        return None
    eos = [*_token(file, "eos_token_id", len(ids)), *_token(file, "eot_token_id", len(ids))]
    begins = _token(file, "bos_token_id", len(ids)) if file.optional("tokenizer.ggml.add_bos_token") else []
    every = frozenset({*ends, *eos, *found.values()})
    found.pop("pad", None)
    return FimTokens(**found, ends=every, start=tuple(begins))


def _token(file: GgufReader, key: str, size: int) -> list[int]:
    """The token id that a metadata field names; none where there is no such field or no such token."""
    token = file.optional(f"tokenizer.ggml.{key}")
    return [token] if isinstance(token, int) and 0 <= token < size else []
