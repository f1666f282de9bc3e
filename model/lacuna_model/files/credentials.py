"""Finds secrets in a text that must not be quoted or learned: private keys, service tokens, random passwords."""

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
    r"hf_[A-Za-z0-9]{30,}",
    r"do[opr]_v1_[0-9a-f]{64}",
    r"gl(?:rt|dt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    r"pypi-AgE[A-Za-z0-9_-]{50,}",
    r"eyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}",
)
_KNOWN = tuple(re.compile(token) for token in _TOKENS)
# The password in a URL. Placeholders in examples are in braces, angles or capitals, or a usual word.
_ADDRESS = re.compile(r"://[^\s:/@'\"]{0,100}:([^\s:/@'\"]{4,200})@[\w.-]")
_PLACEHOLDER = re.compile(
    r"[${<\[(%*]|\A[A-Z_]+\Z|(?i:pass(word)?|secret|example|changeme|token|test|user|root|admin)\w{0,8}\Z"
)
_NAMES = r"(?:secret|token|passw(?:or)?d|api_?key|access_?key|private_?key|credential)"
# A line of YAML, INI or a shell's environment that gives a secret an unquoted value; and the start of such a line.
_REST = re.compile(
    rf"(?im){_NAMES}[\w.-]{{0,60}}[ \t]*[:=][ \t]*([A-Za-z0-9+/=_.!@#%^&*~-]{{8,200}})[ \t]*(?:[#;].*)?$"
)
_HEAD = re.compile(r"[ \t]*(?:export[ \t]+)?[\w.-]*")
_HEX = re.compile(r"(?i)[0-9a-f]{24,}")
_QUOTED = re.compile(r"['\"]([A-Za-z0-9+/=_-]{16,200})['\"]")
_NAMED = re.compile(
    r"(?i)(secret|token|passw(or)?d|api_?key|access_?key|private_?key|credential)\w*['\"]?\s*[:=]{1,2}\s*[bru]?$"
)
_RANDOM = re.compile(r"[A-Za-z0-9+_-]{40,}")
_ALPHABET = re.compile(r"(?i)abcdefgh|12345678")
_ENTROPY_ASSIGNED = 3.7
_ENTROPY_HEX = 3.0
_ENTROPY_RANDOM = 4.6


def holds_credential(text: str) -> bool:
    """Whether a text holds something that looks like a key, a token or a password."""
    if any(token.search(text) for token in _KNOWN):
        return True
    if any(not _PLACEHOLDER.match(m[1]) for m in _ADDRESS.finditer(text)):
        return True
    if any(_is_password(m[1]) and _begins_line(text, m.start()) for m in _REST.finditer(text)):
        return True
    if any(_is_random(m[1]) and _named(text, m) for m in _QUOTED.finditer(text)):
        return True
    return any(_mixed(m[0]) and entropy(m[0]) > _ENTROPY_RANDOM for m in _RANDOM.finditer(text))


def entropy(text: str) -> float:
    """The Shannon entropy of the characters, in bits per character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _begins_line(text: str, at: int) -> bool:
    """Whether only the beginning of a name precedes an offset in its line."""
    return _HEAD.fullmatch(text, text.rfind("\n", 0, at) + 1, at) is not None


def _is_random(text: str) -> bool:
    """Whether a value looks random, by its entropy: letters and digits, or hexadecimal (at most 4 bits per digit)."""
    if _is_hex(text):
        return entropy(text) > _ENTROPY_HEX
    return _mixed(text) and entropy(text) > _ENTROPY_ASSIGNED


def _is_hex(text: str) -> bool:
    """Whether a value is a long hexadecimal number, with digits and letters."""
    return _HEX.fullmatch(text) is not None and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _is_password(text: str) -> bool:
    """Whether an unquoted value is random, or like a password that a person chose: letters, digits and a symbol."""
    if _PLACEHOLDER.match(text):
        return False
    if len(text) >= 16 and _is_random(text):
        return True
    kinds = (str.isalpha, str.isdigit, lambda character: character in "!@#%^&*~")
    return all(any(map(kind, text)) for kind in kinds)


def _named(text: str, value: re.Match[str]) -> bool:
    """Whether a quoted value is assigned to a name that suggests a secret."""
    return _NAMED.search(text[max(0, value.start() - 40) : value.start()]) is not None


def _mixed(text: str) -> bool:
    """Whether a text has digits and both cases, as random tokens do; long identifiers and paths rarely do."""
    digits = sum(character.isdigit() for character in text)
    cases = any(c.islower() for c in text) and any(c.isupper() for c in text)
    return cases and digits >= 3 and not _ALPHABET.search(text)
