"""Finds secrets in a text that must not be quoted or learned: private keys, service tokens, random passwords."""

import re

from lacuna_model.files.known_keys import entropy, holds_known_key

# The password in a URL. Placeholders in examples are in braces, angles or capitals, or a usual word.
_ADDRESS = re.compile(r"://[^\s:/@'\"]{0,100}:([^\s:/@'\"]{4,200})@[\w.-]")
_PLACEHOLDER = re.compile(
    r"[{<\[(%*]|\$[A-Za-z_{(]|\A[A-Z_]+\Z|(?i:pass(word)?|secret|example|changeme|token|test|user|root|admin)\w{0,8}\Z"
)
_NAMES = (
    r"(?:secret|token|passw(?:or)?d|passphrase|pwd|(?:api|access|private|secret|account|auth|encryption|signing)[_-]?key"
    r"|credential|connection_?string)"
)
# The password of a connection string, such as `Server=db;Password=...;`.
_CONNECTION = re.compile(
    r"(?i)[;\"'][ \t]{0,3}(?:password|pwd|accountkey)[ \t]{0,3}=[ \t]{0,3}([^;\"'\s{}<>$%]{4,200})[ \t]*[;\"']"
)
# A secret in the query of an address, in XML, in a pair of name and value, and as a variable of Docker or a shell.
_OTHER_FORMS = re.compile(
    rf"(?i)[?&]{_NAMES}=([^&\s'\"]{{8,200}})"
    rf"|<[\w.:-]{{0,40}}{_NAMES}>\s{{0,9}}([^<\s]{{8,200}})\s{{0,9}}</"
    rf"|\b(?:key|name)\s{{0,3}}[=:]\s{{0,3}}['\"]?[\w.-]{{0,40}}{_NAMES}['\"]?\s{{1,20}}value\s{{0,3}}[=:]\s{{0,3}}['\"]?([^\s'\"]{{8,200}})"
    rf"|\b(?:ENV|ARG|setx?)[ \t]{{1,9}}[\w.-]{{0,40}}{_NAMES}[ \t=]{{1,9}}['\"]?([^\s'\"]{{8,200}})"
)
# Django's key has characters that no other one has.
_DJANGO = re.compile(r"\bSECRET_KEY[ \t]{0,9}=[ \t]{0,9}[rb]?['\"]([^'\"\n]{30,200})['\"]")
# A line of YAML, INI or a shell's environment that gives a secret an unquoted value; and the start of such a line.
_REST = re.compile(
    rf"(?im){_NAMES}[\w.-]{{0,60}}[ \t]*[:=][ \t]*([A-Za-z0-9+/=_.!@#%^&*~-]{{8,200}})[ \t]*(?:[#;].*)?$"
)
_HEAD = re.compile(r"[ \t]*(?:export[ \t]+)?[\w.-]*")
_HEX = re.compile(r"(?i)[0-9a-f]{24,}")
_LOW_OR_HIGH = re.compile(r"(?=(?:\D*\d){4})(?:[a-z0-9]{20,}|[A-Z0-9]{20,})")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_QUOTED = re.compile(r"['\"]([^'\"\s]{8,200})['\"]")
_NAMED = re.compile(rf"(?i){_NAMES}\w*['\"]?\]?\s*(?:[:=]|=>|:=|==){{1,2}}\s*[bru]?$")
_RANDOM = re.compile(r"[A-Za-z0-9+_-]{40,}")
_ALPHABET = re.compile(r"(?i)abcdefgh|12345678")
_ENTROPY_ASSIGNED = 3.7
_ENTROPY_HEX = 3.0
_ENTROPY_RANDOM = 4.6


def holds_credential(text: str) -> bool:
    """Whether a text holds something that looks like a key, a token or a password."""
    if holds_known_key(text):
        return True
    if any(not _PLACEHOLDER.match(m[1]) for m in _ADDRESS.finditer(text)):
        return True
    if any(not _PLACEHOLDER.match(m[1]) for m in _CONNECTION.finditer(text)):
        return True
    if any(entropy(m[1]) > _ENTROPY_ASSIGNED and not re.search(r"[{}<>]", m[1]) for m in _DJANGO.finditer(text)):
        return True
    if any(_is_password(next(filter(None, m.groups()))) for m in _OTHER_FORMS.finditer(text)):
        return True
    if any(_is_password(m[1]) and _begins_line(text, m.start()) for m in _REST.finditer(text)):
        return True
    if any(_named(text, m) and _is_password(m[1]) for m in _QUOTED.finditer(text)):
        return True
    return any(_mixed(m[0]) and entropy(m[0]) > _ENTROPY_RANDOM for m in _RANDOM.finditer(text))


def _begins_line(text: str, at: int) -> bool:
    """Whether only the beginning of a name precedes an offset in its line."""
    return _HEAD.fullmatch(text, text.rfind("\n", 0, at) + 1, at) is not None


def _is_random(text: str) -> bool:
    """Whether a value looks random, by its entropy: letters and digits, or hexadecimal (at most 4 bits per digit)."""
    if _UUID.fullmatch(text):
        return True
    if _is_hex(text):
        return entropy(text) > _ENTROPY_HEX
    return (_mixed(text) or _LOW_OR_HIGH.fullmatch(text) is not None) and entropy(text) > _ENTROPY_ASSIGNED


def _is_hex(text: str) -> bool:
    """Whether a value is a long hexadecimal number, with digits and letters."""
    return _HEX.fullmatch(text) is not None and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _is_password(text: str) -> bool:
    """Whether a secret's value is random, or like a password that a person chose: letters, digits and a symbol."""
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
