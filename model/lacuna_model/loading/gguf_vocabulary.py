"""Reads the tokenizer of a GGUF file, and finds its fill-in-the-middle tokens."""

from collections.abc import Mapping, Sequence, Set

import gguf

from lacuna_model.core.errors import OtherKindError, WeightsError
from lacuna_model.loading.fim_tokens import ENDS, find_fim_tokens
from lacuna_model.loading.gguf_reader import GgufReader
from lacuna_model.tokens.tokenizer import SPLITS, FimTokens, Vocabulary, byte_alphabet

# The defaults: <|endoftext|>, which SmolLM2 saw between documents, and <|im_end|>, which ends a message and here a gap.
# Text never encodes to it.
DOCUMENT_ID = 0
EOG_ID = 2
# The metadata field of a model that answers chats.
CHAT_TEMPLATE = "tokenizer.chat_template"
# Types of tokens that are not text (gguf-py, ``TokenType``).
NO_TEXT = (gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED, gguf.TokenType.UNUSED)
# The metadata fields that name the parts of a fill-in-the-middle prompt, newest first.
FIM_KEYS = {
    "prefix": ("fim_pre_token_id", "prefix_token_id"),
    "suffix": ("fim_suf_token_id", "suffix_token_id"),
    "middle": ("fim_mid_token_id", "middle_token_id"),
    "pad": ("fim_pad_token_id",),
    "repo": ("fim_rep_token_id",),
    "file_sep": ("fim_sep_token_id",),
}


def read_vocabulary(file: GgufReader) -> Vocabulary:
    """The tokenizer of a file; raises WeightsError where its kind is unknown or it is damaged."""
    kind, pre = file.field("tokenizer.ggml.model"), file.optional("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise OtherKindError(f"{file.path} has a {kind!r} tokenizer; only byte-level BPE ('gpt2') is supported")
    if not (isinstance(pre, str) and pre in SPLITS):
        said = "does not say how its tokenizer splits text" if pre is None else f"splits text in a way {pre!r}"
        raise OtherKindError(f"{file.path} {said}; known are {', '.join(SPLITS)}")
    tokens = file.texts("tokenizer.ggml.tokens")
    kinds: Sequence[int] = file.integers("tokenizer.ggml.token_type") or [gguf.TokenType.NORMAL] * len(tokens)
    pairs = [merge.split(" ", 1) for merge in file.texts("tokenizer.ggml.merges")]
    if len(kinds) != len(tokens) or any(len(pair) != 2 for pair in pairs):
        raise WeightsError(f"the tokenizer of {file.path} is damaged; fetch the file again")
    spelled = byte_alphabet().keys()
    special = {i for i, token in enumerate(tokens) if kinds[i] in NO_TEXT or not spelled >= set(token)}
    return vocabulary_of(file, tokens, special, pre, pairs)


def vocabulary_of(
    file: GgufReader, tokens: Sequence[str], special: Set[int], pre: str, merges: Sequence[Sequence[str]] = ()
) -> Vocabulary:
    """The vocabulary of ``tokens``, of which some are ``special``, with the fill-in-the-middle tokens of the file."""
    ids = {token: i for i, token in enumerate(tokens)}
    ends = [ids[name] for name in ENDS if ids.get(name) in special]
    fim = _fim_tokens(file, ids, ends)
    last = [*ends, *_token(file, "eos_token_id", len(tokens)), EOG_ID][0]
    return Vocabulary(
        tokens=tuple(tokens),
        merges=tuple((left, right) for left, right in merges),
        special_ids=frozenset(special | (fim.ends if fim else set())),
        document_id=last if fim else DOCUMENT_ID,
        eog_id=last if fim else EOG_ID,
        pre=pre,
        fim=fim,
    )


def _fim_tokens(file: GgufReader, ids: Mapping[str, int], ends: Sequence[int]) -> FimTokens | None:
    """The tokens of the fill-in-the-middle format, or those that end a chat; None where the model has neither."""
    said = {part: [token for key in keys for token in _token(file, key, len(ids))] for part, keys in FIM_KEYS.items()}
    eos = [*_token(file, "eos_token_id", len(ids)), *_token(file, "eot_token_id", len(ids))]
    begins = _token(file, "bos_token_id", len(ids)) if file.optional("tokenizer.ggml.add_bos_token") else []
    named = {part: tokens[0] for part, tokens in said.items() if tokens}
    found = find_fim_tokens(ids, named, [*ends, *eos], begins, suffix_first=True)
    if found is None and (every := [*ends, *eos]) and file.optional(CHAT_TEMPLATE) is not None:
        last = every[0]
        return FimTokens(last, last, last, frozenset(every), start=tuple(begins), fills=False)
    return found


def _token(file: GgufReader, key: str, size: int) -> list[int]:
    """The token id in a metadata field; empty where there is no such field or no such token."""
    token = file.optional(f"tokenizer.ggml.{key}")
    return [token] if isinstance(token, int) and 0 <= token < size else []
