"""Finds the tokens of a fill-in-the-middle prompt in a vocabulary, by the names that model families give them."""

from collections.abc import Mapping, Sequence

from lacuna_model.tokens.tokenizer import FimTokens

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
