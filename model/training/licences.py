"""Recognises permissive licences in SPDX expressions, classifiers, free text and Debian's ``debian/copyright``."""

import ast
import fnmatch
import re
from collections.abc import Iterable
from email import message_from_string

# MPL and every GPL are excluded, and so is every licence that is not listed.
_PERMISSIVE = re.compile(
    r"0bsd|afl-2\.1|apache-2\.0|bsd-[123]-clause|bsd-2-clause-views|bsd-3-clause-clear|blueoak-1\.0\.0|bsl-1\.0|"
    r"cc0-1\.0|cnri-python|curl|hpnd|isc|mit(-0|-cmu)?|ncsa|psf-2\.0|python-2\.0|postgresql|public-domain|tcl|"
    r"unicode-3\.0|unlicense|x11|zpl-2\.1|zlib",
    re.IGNORECASE,
)

_CLASSIFIERS = {
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Zope Public License": "ZPL-2.1",
    "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "zlib/libpng License": "Zlib",
    "Historical Permission Notice and Disclaimer (HPND)": "HPND",
}

# Free text must match as a whole: "MIT or GPL with exceptions" must not pass because it begins with MIT.
_TEXTS = (
    (re.compile(r"(the )?(mit|expat)([ -]licen[sc]ed?)?( \(mit\))?|licensed under the mit license"), "MIT"),
    (re.compile(r"(the )?((new|modified|simplified|revised|[23]-clause) )?bsd([ -]licen[sc]e)?"), "BSD-3-Clause"),
    (re.compile(r"\(?bsd[ -]?([23])[ -]?clause\)?( licen[sc]e)?"), "BSD-3-Clause"),
    (re.compile(r"(the )?apache( software)?([ -]licen[sc]e)?,?[ -]*((version|v)?[ .-]*2(\.0)?)?"), "Apache-2.0"),
    (re.compile(r"(the )?isc([ -]licen[sc]e)?( \(iscl\))?"), "ISC"),
    (re.compile(r"(psfl?|psf[ -]2\.0|python software foundation( licen[sc]e)?)"), "PSF-2.0"),
    (re.compile(r"(the )?unlicen[sc]e"), "Unlicense"),
)

# Headers that override the package's licence: a copied GPL file inside an MIT package stays GPL.
_COPYLEFT = re.compile(
    r"GNU (Lesser |Library |Affero )?General Public Licen[sc]e|\b[AL]?GPL ?v?[23]\b|Mozilla Public Licen[sc]e"
    r"|SPDX-License-Identifier:\s*\(?(?P<copyleft>[AL]?GPL|MPL|EPL|CDDL|EUPL|CC-BY-(NC|SA))|Business Source Licen[sc]e"
)
_TOKEN = re.compile(r"\(|\)|[\w.+-]+")
_EXCEPTION = re.compile(r"\bWITH\s+[\w.+-]+", re.IGNORECASE)
_HEADER_CHARACTERS = 4000


def permissive_licence(expression: str | None, classifiers: Iterable[str] = (), text: str | None = None) -> str | None:
    """Returns the licence as an SPDX expression if it is permissive, else None.

    The expression takes precedence over the classifiers, and these over the text.
    """
    if expression:
        return expression.strip() if _permits(expression) else None
    names = [name.rsplit(" :: ", 1)[-1] for name in classifiers if name.startswith("License ::")]
    names = [name for name in names if name != "OSI Approved"]
    if names:
        known = [_CLASSIFIERS.get(name) for name in names]
        return " AND ".join(sorted({name for name in known if name})) if all(known) else None
    return _licence_of_text(text or "")


def copyleft_header(source: str) -> bool:
    """Whether the head of a file names a licence that is not permissive."""
    return _COPYLEFT.search(source[:_HEADER_CHARACTERS]) is not None


def _licence_of_text(text: str) -> str | None:
    text = text.strip()
    if text and _permits(text):
        return text
    folded = " ".join(text.lower().rstrip(".").split())
    for pattern, name in _TEXTS:
        if pattern.fullmatch(folded):
            return name
    return _licence_of_body(folded)


def _licence_of_body(text: str) -> str | None:
    """Recognises a whole licence text pasted into the field."""
    if len(text) < 200 or "general public" in text or "mozilla" in text:
        return None
    if "permission is hereby granted, free of charge, to any person obtaining a copy" in text:
        return "MIT"
    if "permission to use, copy, modify, and" in text and "with or without fee is hereby granted" in text:
        return "ISC"
    if "redistribution and use in source and binary forms" in text:
        return "BSD-3-Clause"
    return "Apache-2.0" if "apache license version 2.0, january 2004" in text else None


def _permits(expression: str) -> bool:
    """Evaluates an SPDX expression: AND needs every part to be permissive, OR needs one."""
    # An exception ("WITH LLVM-exception") only grants further rights.
    words = _TOKEN.findall(_EXCEPTION.sub("", expression.replace("/", " OR ")))
    known = {"AND": "and", "OR": "or", "(": "(", ")": ")"}
    said = " ".join(known.get(word.upper(), str(_PERMISSIVE.fullmatch(word) is not None)) for word in words)
    try:
        return _holds(ast.parse(said, mode="eval").body)
    except SyntaxError:
        return False


def _holds(node: ast.expr) -> bool:
    """The value of True and False joined by "and" and "or"; False for anything else."""
    match node:
        case ast.BoolOp(ast.And(), values):
            return all(map(_holds, values))
        case ast.BoolOp(ast.Or(), values):
            return any(map(_holds, values))
    return isinstance(node, ast.Constant) and node.value is True


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
        plain = re.sub(r"^#.*\n?", "", text.replace("\r", ""), flags=re.MULTILINE)
        for paragraph in map(message_from_string, re.split(r"\n\s*\n", plain.strip())):
            files, licence = paragraph["files"], paragraph["license"]
            if files is None or licence is None:
                continue
            short, patterns = licence.strip().split("\n")[0].strip(), files.split()
            if "*" in patterns:
                self.stated = short
            expression = short
            for pattern, replacement in _SPDX:
                expression = pattern.sub(replacement, expression)
            rule = "|".join(f"(?:{fnmatch.translate(pattern)})" for pattern in patterns)
            self._rules.append((re.compile(rule), permissive_licence(expression)))

    def of(self, path: str) -> str | None:
        """Returns the licence of a file, or None if the file must not be used."""
        return next((licence for pattern, licence in reversed(self._rules) if pattern.match(path)), None)
