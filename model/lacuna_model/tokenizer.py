"""Byte-level BPE over plain text: of a GGUF file (with the ids of llama.cpp) or of a checkpoint's own tokenizer."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as BpeTokenizer

from lacuna_model.core.errors import WeightsError

# The ways to split text before merging, by llama.cpp's names (``llama-vocab.cpp``). The patterns of one way are applied
# in turn, each to the pieces left by those before it.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN_SPLITS = (rf"{_WORDS}|\p{{N}}{_REST}",)
_LLAMA3 = (rf"{_WORDS}|\p{{N}}{{1,3}}{_REST}",)
_DEEPSEEK = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}")
SPLITS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan"), QWEN_SPLITS),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "dbrx", "smaug-bpe"), _LLAMA3),
    **dict.fromkeys(
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"),
        (r"\p{N}", _GPT2),
    ),
    **dict.fromkeys(("gpt-2", "phi-2", "mellum", "olmo", "mpt"), (_GPT2,)),
    "deepseek-coder": _DEEPSEEK,
}
# The ways whose tokenizers take a piece of text as one token where the vocabulary has it, whatever the merges yield.
_WHOLE_WORDS = frozenset(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"))

# The vocabulary is sorted by so many bytes of each token.
_KEY = 8


class FimTokens(msgspec.Struct, frozen=True):
    """The token ids of a fill-in-the-middle format; ``repo`` and ``file_sep`` are None where a model has none.

    Any of ``ends`` ends a fill; ``start`` begins every prompt. ``suffix_first``: the suffix stands before the prefix.
    Where nothing stands between a prompt and its fill, ``middle`` is the prefix token. A model that only answers chats
    ``fills`` no gaps: its end stands for the parts that it lacks.
    """

    prefix: int
    suffix: int
    middle: int
    ends: frozenset[int]
    repo: int | None = None
    file_sep: int | None = None
    start: tuple[int, ...] = ()
    suffix_first: bool = False
    fills: bool = True


# The parts of a prompt, each with its names (the same as in llama.cpp's ``llama-vocab.cpp``).
PARTS: Mapping[str, tuple[str, ...]] = {
    "prefix": ("<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<\uff5cfim▁begin\uff5c>", "▁<PRE>", "<PRE>"),
    "suffix": ("<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<\uff5cfim▁hole\uff5c>", "▁<SUF>", "<SUF>"),
    "middle": ("<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<\uff5cfim▁end\uff5c>", "▁<MID>", "<MID>"),
    "pad": ("<|fim_pad|>", "<fim_pad>", "<fim-pad>"),
    "repo": ("<|repo_name|>", "<|fim_repo|>", "<fim-repo>", "<repo_name>", "<reponame>"),
    "file_sep": ("<|file_sep|>", "<file_sep>"),
}
# Formats whose prompt has the suffix first: Seed-Coder's, and Codestral's, whose fill follows the prefix at once.
SUFFIX_FIRST: Sequence[Mapping[str, str]] = (
    {part: f"<[fim-{part}]>" for part in ("prefix", "suffix", "middle")},
    {"prefix": "[PREFIX]", "suffix": "[SUFFIX]", "middle": "[PREFIX]"},
)
# Other tokens that end a fill, the end of a document first.
ENDS = (
    "<|endoftext|>", "<|end_of_text|>", "<\uff5cend▁of▁sentence\uff5c>", "<EOT>", "▁<EOT>", "</s>",
    "<|im_end|>", "<|eot_id|>", "<|EOT|>", "<|end|>",
)  # fmt: skip


def find_fim_tokens(
    ids: Mapping[str, int],
    given: Mapping[str, int],
    ends: Sequence[int],
    start: Sequence[int] = (),
    *,
    suffix_first: bool = False,
) -> FimTokens | None:
    """The tokens of the format; None where the model has none.

    ``ids`` maps the names of all tokens to their ids, ``given`` maps parts to the ids that the model's files give.
    ``ends`` are tokens that end a text, and ``start`` those that begin one. A format with the ``suffix_first`` is found
    only where it is asked for.
    """
    ways = {part: [ids[name] for name in names if name in ids] for part, names in PARTS.items()}
    found = {part: tokens[0] for part, tokens in ways.items() if tokens} | dict(given)
    turned = False
    for names in SUFFIX_FIRST if suffix_first else ():
        parts = {part: ids[name] for part, name in names.items() if name in ids}
        if len(parts) == len(names) and given.get("prefix", parts["prefix"]) == parts["prefix"]:
            turned, found = True, {**found, **parts, **given}
            break
    if not {"prefix", "suffix", "middle"} <= found.keys():
        return None
    every = frozenset({*ends, *found.values()})
    found.pop("pad", None)
    return FimTokens(**found, ends=every, start=tuple(start), suffix_first=turned, fills=True)


class Vocabulary(msgspec.Struct, frozen=True):
    """The tokenizer in a model's files: token strings by id, merges in order, special ids.

    ``pre`` names the way of :data:`SPLITS` to split text, and ``fim`` are the tokens of the fill-in-the-middle format,
    where the model has one.
    """

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    special_ids: frozenset[int]
    eog_id: int
    pre: str = "smollm"
    fim: FimTokens | None = None


def byte_alphabet() -> dict[str, int]:
    """GPT-2's printable substitute for every byte (openai/gpt-2, ``encoder.py``), as character -> byte."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    moved = [byte for byte in range(256) if byte not in set(kept)]
    alphabet = {chr(byte): byte for byte in kept}
    alphabet.update({chr(256 + i): byte for i, byte in enumerate(moved)})
    return alphabet


def pre_tokenizer(patterns: Sequence[str]) -> pre_tokenizers.PreTokenizer:
    """Splits text by each of ``patterns`` in turn, and spells its bytes in the byte-level alphabet."""
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _bpe(vocabulary: Vocabulary) -> BpeTokenizer:
    """The tokenizer of a vocabulary; raises WeightsError where its merges yield tokens that it does not have."""
    ids = dict(zip(vocabulary.tokens, range(len(vocabulary.tokens)), strict=True))
    whole = vocabulary.pre in _WHOLE_WORDS
    try:
        bpe = BpeTokenizer(models.BPE(vocab=ids, merges=list(vocabulary.merges), ignore_merges=whole))
    except Exception as error:  # the library raises a bare Exception
        raise WeightsError(f"the tokenizer's merges do not fit its vocabulary ({error})") from error
    bpe.pre_tokenizer = pre_tokenizer(SPLITS[vocabulary.pre])
    return bpe


def _spelled(vocabulary: Vocabulary) -> list[bytes]:
    """The bytes of every token; special tokens have none."""
    alphabet = byte_alphabet()
    bytes_of = np.zeros(max(map(ord, alphabet)) + 1, dtype=np.uint8)
    bytes_of[[ord(character) for character in alphabet]] = list(alphabet.values())
    texts = list(vocabulary.tokens)
    for i in vocabulary.special_ids:
        texts[i] = ""
    whole = bytes_of[np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")].tobytes()
    ends = list(accumulate(map(len, texts)))
    return [whole[begin:end] for begin, end in pairwise([0, *ends])]


class Tokenizer:
    """Turns text into token ids and back, byte for byte.

    Text never encodes to special tokens, so ``<|im_end|>`` in a file is read as plain text. ``eog_id``
    (end-of-gap) ends a fill. ``bpe`` is the checkpoint's own tokenizer; without it one is built from the vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary, bpe: BpeTokenizer | None = None) -> None:
        self.eog_id = vocabulary.eog_id
        self.special_ids = vocabulary.special_ids
        self.fim = vocabulary.fim
        self.vocab_size = len(vocabulary.tokens)
        self.vocabulary = vocabulary
        self._bytes = _spelled(vocabulary)
        self._bpe = bpe or _bpe(vocabulary)

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ids: list[int] = self._bpe.encode(text, add_special_tokens=False).ids
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of several texts, in parallel."""
        return [encoding.ids for encoding in self._bpe.encode_batch_fast(list(texts), add_special_tokens=False)]

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; special tokens have none."""
        return self._bytes[token]

    def token(self, text: bytes) -> int | None:
        """The token whose bytes are ``text``, of several the last; None where there is none."""
        ids, keys = self._sorted
        key = np.uint64(int.from_bytes(text[:_KEY].ljust(_KEY, b"\0")))
        alike = ids[np.searchsorted(keys, key) : np.searchsorted(keys, key, side="right")]
        return max((token for token in alike.tolist() if self._bytes[token] == text), default=None)

    def is_begun(self, data: bytes) -> bool:
        """Whether ``data`` is the beginning of a longer token."""
        return any(len(self._bytes[token]) > len(data) for token in self.starting_with(data))

    def starting_with(self, prefix: bytes) -> NDArray[np.int64]:
        """The ids [N] of all tokens but the special ones whose bytes start with ``prefix``."""
        ids, keys = self._sorted
        first, last = (int.from_bytes(prefix[:_KEY].ljust(_KEY, fill)) for fill in (b"\0", b"\xff"))
        found = ids[np.searchsorted(keys, np.uint64(first)) : np.searchsorted(keys, np.uint64(last), side="right")]
        if len(prefix) <= _KEY and b"\0" not in prefix:
            return found
        return found[[self._bytes[token].startswith(prefix) for token in found.tolist()]]

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The ids of all tokens but the special ones, sorted by their first bytes as numbers, and these numbers."""
        ids = np.delete(np.arange(self.vocab_size), sorted(self.special_ids))
        keys = np.array(self._bytes, dtype=f"S{_KEY}").view(">u8").astype(np.uint64)[ids]
        order = np.argsort(keys, kind="stable")
        return ids[order], keys[order]

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of a run of tokens."""
        return b"".join(map(self._bytes.__getitem__, tokens))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a run of tokens; a cut UTF-8 sequence shows as U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", errors="replace")

    @cached_property
    def fingerprint(self) -> str:
        """A digest of vocabulary and merges, by which indexes of another tokenizer are refused."""
        digest = hashlib.sha256()
        for token in self.vocabulary.tokens:
            digest.update(token.encode() + b"\0")
        for left, right in self.vocabulary.merges:
            digest.update(f"{left} {right}\0".encode())
        return digest.hexdigest()[:16]
