"""Secrets inside a text, neither to be learned nor quoted: private keys, service tokens, random-looking passwords."""

import math
import re
from collections import Counter

_TOKENS = (
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----",
    r"A(?:KIA|SIA)[0-9A-Z]{16}\b",
    r"gh[pousr]_[A-Za-z0-9]{36}",
    r"github_pat_[A-Za-z0-9_]{50,}",
    r"glpat-[A-Za-z0-9_-]{20}",
    r"xox[abeoprs]-[A-Za-z0-9-]{20,}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"(?<![\w-])sk-[A-Za-z0-9_-]{32,}",
    r"[sr]k_live_[0-9a-zA-Z]{20,}",
    r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-AgE[A-Za-z0-9_-]{50,}",
    r"eyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}",
)
_KNOWN = tuple(re.compile(token) for token in _TOKENS)
_QUOTED = re.compile(r"['\"]([A-Za-z0-9+/=_-]{16,200})['\"]")
_NAMED = re.compile(
    r"(?i)(secret|token|passw(or)?d|api_?key|access_?key|private_?key|credential)\w*['\"]?\s*[:=]{1,2}\s*[bru]?$"
)
_RANDOM = re.compile(r"[A-Za-z0-9+_-]{40,}")
_ALPHABET = re.compile(r"(?i)abcdefgh|12345678")
_ENTROPY_ASSIGNED = 3.7
_ENTROPY_RANDOM = 4.6


def holds_credential(text: str) -> bool:
    """Whether a file holds something that looks like a key, a token or a password."""
    if any(token.search(text) for token in _KNOWN):
        return True
    if any(_mixed(m[1]) and entropy(m[1]) > _ENTROPY_ASSIGNED and _named(text, m) for m in _QUOTED.finditer(text)):
        return True
    return any(_mixed(m[0]) and entropy(m[0]) > _ENTROPY_RANDOM for m in _RANDOM.finditer(text))


def entropy(text: str) -> float:
    """Return the Shannon entropy of the characters, in bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _named(text: str, value: re.Match[str]) -> bool:
    """Whether the name that a quoted value is given to says that it is a secret."""
    return _NAMED.search(text[max(0, value.start() - 40) : value.start()]) is not None


def _mixed(text: str) -> bool:
    """Random tokens mix digits with both cases; long identifiers and paths rarely do."""
    digits = sum(character.isdigit() for character in text)
    cases = any(c.islower() for c in text) and any(c.isupper() for c in text)
    return cases and digits >= 3 and not _ALPHABET.search(text)
