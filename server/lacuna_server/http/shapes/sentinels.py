"""Parses fill-in-the-middle prompts with the sentinels of the known model families.

Clients of a plain completion endpoint write prefix and suffix of the gap into one prompt. The sentinels are those of
the model cards. Their order does not matter here, so prompts may begin with the prefix or with the suffix.
"""

import re
from collections.abc import Iterable, Iterator

from lacuna_model.core.params import Snippet
from lacuna_server.http.shapes.exchange import Prompt


def _family(prefix: str, suffix: str, middle: str) -> tuple[tuple[str, str], re.Pattern[str]]:
    """Return the plain texts of prefix and suffix sentinel, which are found fast, and a pattern with named groups."""
    first, second = (re.sub(r"\\A|\\(.)| \?", r"\1", pattern) for pattern in (prefix, suffix))
    return (first, second), re.compile(f"(?P<prefix>{prefix})|(?P<suffix>{suffix})|(?P<middle>{middle})")


# The sentinels of each family of models. Text after the middle one continues the prefix.
FAMILIES = (
    _family(r"<\|fim_prefix\|>", r"<\|fim_suffix\|>", r"<\|fim_middle\|>"),  # Qwen, CodeGemma, Granite, Yi
    _family("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, SmolLM, StableCode, Refact, Mellum
    _family("<PRE> ?", " ?<SUF>", " ?<MID> ?"),  # Code Llama, where the spaces belong to the format
    _family("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),  # DeepSeek
    _family(r"<\|code_prefix\|>", r"<\|code_suffix\|>", r"<\|code_middle\|>(?:<\|assistant\|>\n)?"),  # GLM, CodeGeeX
    _family(r"<\[fim-prefix\]>", r"<\[fim-suffix\]>", r"<\[fim-middle\]>"),  # Seed-Coder
    _family(r"\[PREFIX\]", r"\A\[SUFFIX\]", r"\[MIDDLE\]"),  # Codestral, whose suffix always comes first
)
_FILE_START = re.compile(r"<\|file_sep\|>|<\|file_separator\|>|<file_sep>|<filename>")
_FILE_MARKS = ("<|file_sep", "<file_sep>", "<filename>")
# CodeGeeX's header with the path; the file to fill comes last.
_PATH_HEADER = re.compile(r"(?:<\|user\|>\n)?###PATH:(?P<path>[^\n]*)\n###LANGUAGE:[^\n]*\n###MODE:[^\n]*\n\Z")
# The pattern searches for an end from each of its beginnings, so it gets no more text than a header can have.
MAX_HEADER = 2048
_REPOSITORY = re.compile(r"\A(?:<\|repo_name\|>|<repo_name>|<reponame>)[^\n<]*\n?")
# The header of a file in Codestral's prompts, and Mercury's beginning of a prompt whose suffix comes apart.
_HEADER = re.compile(r"(?:\A|\n\n)\+{5} (?P<path>[^\n]+?) *\n")
_OPENING = re.compile(r"(?:<\|file_sep\|>(?P<path>[^\n]*)\n)?<\|fim_prefix\|>")
_PATH = re.compile(r"[\w@+-]*[./\\][\w./\\@+-]*")
# Clients write this for an empty suffix, because their models need some text there.
END_OF_TEXT = "<|endoftext|>"


def parse(prompt: str, suffix: str | None = None) -> Prompt:
    """Parse a prompt. Without sentinels, or with a separate ``suffix``, all of it is the prefix, but for file headers.

    Clients write a suffix of nothing, or of the end of the text, beside a prompt that has its own.
    """
    after = suffix if suffix not in (None, END_OF_TEXT) else ""
    if not after and (parts := _sections(prompt)) is not None:
        path, snippets = _files(parts["header"])
        after = parts["suffix"].removesuffix(END_OF_TEXT)
        inner = _under_headers(parts["prefix"] + parts.get("middle", ""), after)
        return Prompt(inner.before, after, path or inner.path, (*snippets, *inner.snippets))
    if suffix is not None and (opening := _OPENING.match(prompt)):
        return Prompt(prompt[opening.end() :], after, (opening["path"] or "").strip())
    return _under_headers(prompt, after)


def _sections(prompt: str) -> dict[str, str] | None:
    """Return what is behind each sentinel up to the next one, and the ``header`` before all; None without sentinels."""
    for pattern in _patterns(prompt):
        found = {str(match.lastgroup): match for match in reversed(list(pattern.finditer(prompt)))}
        if "prefix" in found and "suffix" in found:
            starts = [*sorted(match.start() for match in found.values()), len(prompt)]
            parts = {
                name: prompt[match.end() : next(start for start in starts if start >= match.end())]
                for name, match in found.items()
            }
            return {"header": prompt[: starts[0]], **parts}
    return None


def _under_headers(prompt: str, after: str) -> Prompt:
    """Return a prompt of several files under Codestral's headers, the last of which is open; or all as the prefix."""
    parts = _HEADER.split(prompt)[1:] if prompt.startswith("+++++ ") else []  # paths and texts in turns
    if not parts:
        return Prompt(prompt, after)
    *others, (path, before) = zip(parts[::2], parts[1::2], strict=True)
    return Prompt(before, after, path, _snippets(others))


def _patterns(prompt: str) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of the families whose sentinels may be in a prompt."""
    return (pattern for marks, pattern in FAMILIES if all(mark in prompt for mark in marks))


def is_prompt(message: str) -> bool:
    """Return whether a message of a chat is a prompt: its first sentinel begins a line, or follows another mark."""
    found = (match for pattern in _patterns(message) for match in pattern.finditer(message))
    first = min((match.start() for match in found), default=-1)
    return first >= 0 and (first == 0 or message[first - 1] in "\n>") and parse(message) != Prompt(message)


def _files(header: str) -> tuple[str, tuple[Snippet, ...]]:
    """Read the text before the sentinels. Return this file's path ("" if it is not given) and the other files."""
    if told := _PATH_HEADER.search(header[-MAX_HEADER:]):
        return told["path"], ()
    text = _REPOSITORY.sub("", header)
    is_marked, is_repository = any(mark in text for mark in _FILE_MARKS), text != header
    *others, last = _FILE_START.split(text) if is_marked else [text]
    path, rest = _path_line(last)
    if is_marked and not path and "\n" not in last.strip():  # one line between a file's mark and the gap
        path, rest = last.strip(), ""
    texts = others if path and not rest.strip() else [*others, last]
    named = map(_first_line if is_repository else _path_line, texts)  # each file of a repository begins with its path
    return (path if len(texts) == len(others) else ""), _snippets(named)


def _snippets(named: Iterable[tuple[str, str]]) -> tuple[Snippet, ...]:
    """Return the other files that hold something, given as paths and texts."""
    return tuple(Snippet(path, text, reason="prompt") for path, text in named if text.strip())


def _first_line(text: str) -> tuple[str, str]:
    line, _, rest = text.partition("\n")
    return line.strip(), rest


def _path_line(text: str) -> tuple[str, str]:
    """Return the path on the first line and the rest; "" and the whole text where that line is not a path."""
    line, rest = _first_line(text)
    return (line, rest) if _PATH.fullmatch(line) else ("", text)
