"""Reads Debian's machine-readable ``debian/copyright``, which states the licence of each file of a package."""

import fnmatch
import re
from collections.abc import Iterable, Iterator

from training.accepted.licences import permissive_licence

# Debian's short names that differ from SPDX's, with their replacements.
_SPDX = (
    (re.compile(r"(?i)\bexpat\b"), "MIT"),
    (re.compile(r"(?i)\band/or\b|\|"), "OR"),
    (re.compile(r"(?i) with llvm[- ]exceptions?"), ""),
    (re.compile(r"(?i)\bbsd-([23])-clauses?\b"), r"BSD-\1-Clause"),
    (re.compile(r"(?i)\bapache-2\b(?!\.)"), "Apache-2.0"),
    (re.compile(r"(?i)\bpsf-2\b(?!\.)"), "PSF-2.0"),
    (re.compile(r","), " "),
)


class FileLicences:
    """The licences in a ``debian/copyright``; the last paragraph whose pattern matches a file applies."""

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[re.Pattern[str], str | None]] = []
        self.stated = "none"
        for paragraph in paragraphs(text.splitlines()):
            if "files" not in paragraph or "license" not in paragraph:
                continue
            short = paragraph["license"].split("\n")[0].strip()
            patterns = paragraph["files"].split()
            if "*" in patterns:
                self.stated = short
            rule = "|".join(f"(?:{fnmatch.translate(pattern)})" for pattern in patterns)
            self._rules.append((re.compile(rule), permissive_licence(_spdx(short))))

    def of(self, path: str) -> str | None:
        """Returns the licence of a file, or None if the file must not be used."""
        return next((licence for pattern, licence in reversed(self._rules) if pattern.match(path)), None)


def paragraphs(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Reads Debian's control format: `Field: value`, indented continuation lines, blank lines between paragraphs."""
    paragraph: dict[str, str] = {}
    name = ""
    for raw in lines:
        line = raw.rstrip("\n")
        if not line.strip():
            if paragraph:
                yield paragraph
            paragraph, name = {}, ""
        elif line[0] in " \t":
            if name:
                paragraph[name] = f"{paragraph[name]}\n{line.strip()}".lstrip("\n")
        elif not line.startswith("#"):
            name, _, value = line.partition(":")
            name = name.lower()
            paragraph[name] = value.strip()
    if paragraph:
        yield paragraph


def _spdx(short: str) -> str:
    for pattern, replacement in _SPDX:
        short = pattern.sub(replacement, short)
    return short
