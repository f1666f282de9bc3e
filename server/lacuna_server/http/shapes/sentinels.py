"""Fill-in-the-middle prompts: the sentinels of the known model families, found and taken apart.

Clients that speak to a plain completion endpoint write both sides of the gap into one prompt. The strings are those of
the model cards; order matters to none of them here, so that prefix-first and suffix-first prompts are both read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lacuna_model.core.params import Snippet


@dataclass(frozen=True, slots=True)
class Family:
    """Patterns of one family's sentinels. What follows ``middle`` continues the prefix."""

    name: str
    prefix: str
    suffix: str
    middle: str

    @property
    def marks(self) -> tuple[str, str]:
        """The plain texts of prefix and suffix sentinel, which are looked for a hundred times as fast as patterns."""
        prefix, suffix = (re.sub(r"\\A|\\(.)| \?", r"\1", pattern) for pattern in (self.prefix, self.suffix))
        return prefix, suffix

    def pattern(self) -> re.Pattern[str]:
        """Finds the family's sentinels, each by the name of its group."""
        return re.compile(f"(?P<prefix>{self.prefix})|(?P<suffix>{self.suffix})|(?P<middle>{self.middle})")


FAMILIES = (
    Family("qwen", r"<\|fim_prefix\|>", r"<\|fim_suffix\|>", r"<\|fim_middle\|>"),  # CodeGemma, Granite and Yi too
    Family("starcoder", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # SmolLM, StableCode, Refact, Mellum
    Family("santacoder", "<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    Family("codellama", "<PRE> ?", " ?<SUF>", " ?<MID> ?"),  # the spaces belong to the format
    Family("deepseek", "<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),
    Family("glm", r"<\|code_prefix\|>", r"<\|code_suffix\|>", r"<\|code_middle\|>(?:<\|assistant\|>\n)?"),  # CodeGeeX
    Family("seed-coder", r"<\[fim-prefix\]>", r"<\[fim-suffix\]>", r"<\[fim-middle\]>"),
    Family("codestral", r"\[PREFIX\]", r"\A\[SUFFIX\]", r"\[MIDDLE\]"),  # suffix first, always
)
_FILE_START = re.compile(r"<\|file_sep\|>|<\|file_separator\|>|<file_sep>|<filename>")
_FILE_MARKS = ("<|file_sep", "<file_sep>", "<filename>")
# CodeGeeX tells the path so; the file to fill comes last.
_PATH_HEADER = re.compile(r"(?:<\|user\|>\n)?###PATH:(?P<path>[^\n]*)\n###LANGUAGE:[^\n]*\n###MODE:[^\n]*\n\Z")
# The pattern looks for an end again at each of its beginnings, so it is shown no more text than a header has.
MOST_HEADER = 2048
_REPOSITORY = re.compile(r"\A(?:<\|repo_name\|>|<repo_name>|<reponame>)[^\n<]*\n?")
_PATH = re.compile(r"[\w@+-]*[./\\][\w./\\@+-]*")
# Characters that are looked through in one go, and those that the longest sentinel has.
STRETCH, LONGEST = 65_536, 64
# What clients write for a suffix that is empty, as their models want something there.
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Both sides of a gap, the file it is in (""), and the other files that the prompt brought along."""

    before: str
    after: str = ""
    path: str = ""
    snippets: tuple[Snippet, ...] = ()


def parse(prompt: str, suffix: str | None = None) -> Prompt:
    """The prompt taken apart. Text without sentinels, or beside a ``suffix`` of its own, is all *before*."""
    if suffix is None:
        for family in FAMILIES:
            if not all(mark in prompt for mark in family.marks):
                continue
            found = {match.lastgroup: match for match in reversed(list(_matches(family.pattern(), prompt)))}
            if "prefix" in found and "suffix" in found:
                return _taken_apart(prompt, found)
    return Prompt(prompt, "" if suffix is None or suffix == END_OF_TEXT else suffix)


def _matches(pattern: re.Pattern[str], prompt: str) -> Iterator[re.Match[str]]:
    """All matches; of a long text a stretch at a time, for others cannot run while a pattern looks for its next one."""
    for start in range(0, len(prompt), STRETCH):
        for match in pattern.finditer(prompt, start, start + STRETCH + LONGEST):
            if match.start() < start + STRETCH:
                yield match


def has_sentinels(prompt: str) -> bool:
    """Whether the prompt names both sides of a gap."""
    return parse(prompt) != Prompt(prompt)


def _taken_apart(prompt: str, found: dict[str | None, re.Match[str]]) -> Prompt:
    """Every section reaches from its sentinel to the next one."""
    starts = sorted(match.start() for match in found.values())
    sections = {
        name: prompt[match.end() : min((start for start in starts if start >= match.end()), default=len(prompt))]
        for name, match in found.items()
    }
    path, snippets = _files(prompt[: starts[0]])
    after = sections["suffix"].removesuffix(END_OF_TEXT)
    return Prompt(sections["prefix"] + sections.get("middle", ""), after, path, snippets)


def _files(header: str) -> tuple[str, tuple[Snippet, ...]]:
    """What stands in front of the sentinels: other files, and last, where it is given, this one's path."""
    if told := _PATH_HEADER.search(header[-MOST_HEADER:]):
        return told["path"], ()
    text = _REPOSITORY.sub("", header)
    *others, last = _FILE_START.split(text) if any(mark in text for mark in _FILE_MARKS) else [text]
    path, rest = _path_line(last)
    texts = others if path and not rest.strip() else [*others, last]
    return (path if len(texts) == len(others) else ""), _snippets(texts)


def _snippets(texts: Sequence[str]) -> tuple[Snippet, ...]:
    named = [_path_line(text) for text in texts]
    return tuple(Snippet(path, text, reason="prompt") for path, text in named if text.strip())


def _path_line(text: str) -> tuple[str, str]:
    """The path on the first line and what follows it; "" and all of the text where that line is none."""
    line, _, rest = text.partition("\n")
    return (line.strip(), rest) if _PATH.fullmatch(line.strip()) else ("", text)
