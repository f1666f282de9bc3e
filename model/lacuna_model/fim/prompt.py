"""The first tokens of a fill-in-the-middle prompt: other files in the repository format, then the open file's header.

The format is that of Qwen2.5-Coder (arXiv 2409.12186, section 3.2.2): the repository's name, then each file after its
path; the open file comes last and holds the prefix token.

A small model writes what it sees: behind ``return`` without a value it leaves its own gap empty, too. So the line of a
later gap is left out if it ends with the gap, or with a mark behind it, and so are the headers of blocks that would
hold nothing. Where a gap is whole lines nothing is left out, since its header helps then.
"""

from collections.abc import Sequence
from pathlib import PurePath

from lacuna_model.core.context import TextTokenizer
from lacuna_model.core.enclosing import column
from lacuna_model.core.params import Snippet
from lacuna_model.snippets.format import join
from lacuna_model.text.lines import first_written
from lacuna_model.tokenizer import FimTokens

# The repository name in the prompt; workspaces have none, and the format requires one.
NO_NAME = "workspace"
# Blanks, and the marks that end a statement or an entry.
_ENDS = " \t\r;,"


def prompt_head(fim: FimTokens, tokenizer: TextTokenizer, snippets: Sequence[Snippet], path: str) -> list[int]:
    """The tokens before the open file's text; where the suffix comes first, those between prefix token and text."""
    if fim.suffix_first:
        return tokenizer.encode(join(snippets))
    files = [(snippet.path, snippet.text) for snippet in snippets]
    if fim.repo is None or fim.file_sep is None or not files:
        return [*fim.start, fim.prefix]
    tokens = [*fim.start, fim.repo, *tokenizer.encode(f"{NO_NAME}\n")]
    for name, text in files:
        tokens += [fim.file_sep, *tokenizer.encode(f"{name}\n{text.rstrip()}\n")]
    return [*tokens, fim.file_sep, *tokenizer.encode(f"{PurePath(path).name}\n"), fim.prefix]


def whole_prompt(fim: FimTokens, head: Sequence[int], before: Sequence[int], after: Sequence[int]) -> list[int]:
    """The prompt of one gap; ``head`` are the tokens before the text."""
    if fim.suffix_first:
        opening = [] if fim.middle == fim.prefix else [fim.middle]
        return [*fim.start, fim.suffix, *after, fim.prefix, *head, *before, *opening]
    return [*head, *before, fim.suffix, *after, fim.middle]


def joined(before: str, after: str) -> str:
    """The texts around a later gap without it; the first line of ``before`` is that of the prompt's own gap."""
    above, newline, head = before.rpartition("\n")
    rest, _, below = after.partition("\n")
    if rest.strip(_ENDS) or not head or not newline:
        return before + after
    while True:
        top, newline, header = above.rpartition("\n")
        first = first_written(below)
        if newline and header.rstrip().endswith(":") and column(first) <= column(header):
            above = top
        elif newline and header.rstrip().endswith("{") and first.strip() == "}":
            above, below = top, below.partition(first)[2].removeprefix("\n")
        else:
            return f"{above}\n{below}"
