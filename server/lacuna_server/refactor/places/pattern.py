"""Reads a structural pattern: code in which metavariables stand for nodes.

A pattern is parsed in the contexts in which such code can stand (``contexts.toml``), with a text of the language in the
place of each metavariable. ``$A`` stands for one named node, ``$$A`` for any token, ``$$$A`` for any number of nodes;
names that begin with ``_`` bind nothing.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

import msgspec
from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax import Language

# PHP's own variables of this form are text.
VARIABLE = re.compile(
    r"(\${1,3})(?!(?:GLOBALS|_SERVER|_GET|_POST|_FILES|_COOKIE|_SESSION|_REQUEST|_ENV)\b)([A-Z_][A-Z0-9_]*)"
)
HOLE = "PATTERN"
# So many ways to write the metavariables of a pattern are tried, and so many are taken once one has parsed.
MAX_GUISES = 400
MAX_WAYS = 12
# The limits of a pattern: characters, metavariables, and nodes within each other.
MAX_LENGTH, MAX_VARIABLES, MAX_DEPTH = 4_000, 50, 60
# A long pattern is tried in fewer ways: so many characters in all.
TRIED = 100_000
SHOWN = 200
# The patterns whose readings are kept, each in one language: those of a refactor of files in all languages.
KEPT = 64
# Where a node is read both as an expression and as a statement, both are places.
_STEM = re.compile(r"_(expression|statement)$")
# Nodes of text, in which a token is not code.
TEXTS = re.compile(r"string|char|regex|heredoc|template_literal")

# What precedes and follows a metavariable that is the body of a statement.
_BODY, _NO_MORE = re.compile(r"(\)|\belse|\bdo)\s*$"), re.compile(r"\s*($|else\b|while\b)")
# Nodes that only hold a list of others.
LISTS = re.compile(r"^(block|body_statement|block_body|then|argument_list|statement_list|statements)$")
SEPARATORS = frozenset((",", ";"))
_BLANKS = re.compile(rb"[\s\\]+")


@dataclass(frozen=True, slots=True)
class PatternNode:
    """A node of a pattern: a metavariable, a token, or a node with children.

    ``start`` and ``end`` are byte offsets in the stripped pattern. ``text`` is that of a token, or what stands between
    the children and is no token. A ``supplied`` token is not in the pattern itself.
    """

    kind: str
    named: bool
    start: int
    end: int
    text: str = ""
    children: tuple["PatternNode", ...] = ()
    variable: str = ""
    sigil: str = ""
    supplied: bool = False

    @property
    def many(self) -> bool:
        """Whether it stands for any number of nodes."""
        return self.sigil == "$$$"

    def leaves(self) -> Iterator["PatternNode"]:
        """Yields the tokens and metavariables in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True, slots=True)
class ParsedPattern:
    """A pattern as it was parsed in one context: sibling nodes, and what the context is called."""

    context: str
    roots: tuple[PatternNode, ...]

    @property
    def kind(self) -> str:
        """The type of its first node."""
        return self.roots[0].kind

    def leaves(self) -> Iterator[PatternNode]:
        """Yields its tokens and metavariables in order."""
        for root in self.roots:
            yield from root.leaves()

    def bound(self) -> frozenset[str]:
        """Returns the names that it binds."""
        return frozenset(leaf.variable for leaf in self.leaves() if leaf.variable and leaf.variable[0] != "_")

    def words(self) -> frozenset[bytes]:
        """Returns words that every place of it contains."""
        return frozenset(leaf.text.encode() for leaf in self.leaves() if leaf.text[:1].isalnum() and leaf.named)


class _Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[str, ...] = ()
    many: tuple[str, ...] = ()
    body: str = ""
    contexts: tuple[tuple[str, str], ...] = ()
    like: str = ""


def pattern_names(pattern: str) -> frozenset[str]:
    """Returns the names that a pattern binds by ``$NAME`` and ``$$$NAME``; names that begin with ``_`` bind nothing."""
    return frozenset(name for _, name in VARIABLE.findall(pattern) if not name.startswith("_"))


@lru_cache(maxsize=KEPT)
def readings(pattern: str, language: Language) -> tuple[tuple[ParsedPattern, ...], ...]:
    """Returns the readings of a pattern in groups; a later group counts where no earlier one has a place.

    Raises RequestError where the pattern is no code of the language in any context, and where it is over a limit.
    """
    contexts = _contexts(language.name)
    text = pattern.strip()
    if not text:
        raise RequestError(f"the pattern is not {language.name}: it is empty")
    if len(text) > MAX_LENGTH:
        raise RequestError(f"the pattern has {len(text)} characters; at most {MAX_LENGTH} are read")
    variables = list(VARIABLE.finditer(text))
    if len(variables) > MAX_VARIABLES:
        raise RequestError(f"the pattern has {len(variables)} metavariables; at most {MAX_VARIABLES} are read")
    found: list[ParsedPattern] = []
    partial: list[ParsedPattern] = []  # with a metavariable that is no node
    ways: list[tuple[str, ...]] = []
    for guises in itertools.islice(_guises(text, variables, contexts), TRIED // len(text) + 1):
        if ways and _names(guises, variables) != _names(ways[0], variables):
            continue
        parsed = _Parsed(text, variables, guises)
        for name, around in contexts.contexts:
            if roots := parsed.roots(around, language):
                reading = ParsedPattern(name, roots)
                num_nodes = sum(bool(leaf.variable) for leaf in reading.leaves())
                known = found if num_nodes == len(variables) else partial
                if all(roots != other.roots for other in known):
                    known.append(reading)
        ways += [guises] if found else []
        if len(ways) == MAX_WAYS:
            break
    groups: dict[str, list[ParsedPattern]] = {}
    for reading in found or partial:
        groups.setdefault(_STEM.sub("", reading.kind), []).append(reading)
    if groups:
        return tuple(map(tuple, groups.values()))
    kinds = ", ".join(dict.fromkeys(name for name, _ in contexts.contexts))
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    raise RequestError(f"the pattern is not {language.name}: {shown!r} does not parse as {kinds}")


def _names(guises: Sequence[str], variables: Sequence[re.Match[str]]) -> list[str]:
    """Returns the texts of the metavariables that stand for one node."""
    return [guise for guise, found in zip(guises, variables, strict=True) if found[1] != "$$$"]


def _guises(text: str, variables: Sequence[re.Match[str]], contexts: _Contexts) -> Iterator[tuple[str, ...]]:
    """Yields texts for the metavariables, the plainest first."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(found[2] for found in variables))}
    options = []
    for found in variables:
        texts = contexts.names + (contexts.many if found[1] == "$$$" else ())
        if contexts.body and _BODY.search(text[: found.start()]) and _NO_MORE.match(text[found.end() :]):
            texts = (contexts.body, *texts)
        number = numbers[found[2]]
        options.append([re.sub(r"\bX\b", f"x{number}", one).replace("CONSTANT", f"X{number}") for one in texts])
    ways = itertools.islice(itertools.product(*(range(len(texts)) for texts in options)), 50 * MAX_GUISES)
    for way in sorted(ways, key=sum)[:MAX_GUISES]:
        yield tuple(texts[index] for texts, index in zip(options, way, strict=True))


@cache
def _contexts(language: str) -> _Contexts:
    text = (resources.files(__package__) / "contexts.toml").read_bytes()
    own = msgspec.toml.decode(text, type=dict[str, _Contexts])[language]
    if not own.like:
        return own
    base = _contexts(own.like)
    return _Contexts(base.names + own.names, base.many + own.many, own.body or base.body, base.contexts + own.contexts)


class _Parsed:
    """A pattern with texts in the place of its metavariables."""

    def __init__(self, text: str, variables: Sequence[re.Match[str]], guises: Sequence[str]) -> None:
        self._pattern = text.encode()
        # Where each metavariable stands, in the pattern and in the text that is parsed.
        self._spans: list[tuple[int, int, int, int, int, re.Match[str]]] = []
        out, position = b"", 0
        for found, guise in zip(variables, guises, strict=True):
            start, end = (len(text[:at].encode()) for at in found.span())
            out += self._pattern[position:start]
            first, last = len(out), len(out) + len(guise.rstrip().encode())
            out, position = out + guise.encode(), end
            self._spans.append((start, end, first, last, len(out), found))
        self._written = out + self._pattern[position:]
        self._begin = self._stop = 0
        self._data = b""

    def roots(self, around: str, language: Language) -> tuple[PatternNode, ...]:
        """Returns the nodes of the pattern within its context; none where it does not parse there."""
        before, _, after = around.partition(HOLE)
        self._begin = len(before.encode())
        self._stop = self._begin + len(self._written)
        try:
            self._data = before.encode() + self._written + after.encode()
            tree = language.parser().parse(self._data)
        except UnparsableError:
            return ()
        if tree.root_node.has_error:
            return ()
        ends = (self._stop, self._stop + 1) if after.startswith((";", "\n")) else (self._stop,)
        return tuple(self._node(node) for node in self._spanning(tree.root_node, ends))

    def _spanning(self, node: Node, ends: Sequence[int]) -> list[Node]:
        """Returns the inmost named node, or the siblings, that are exactly the pattern; none if there are none."""
        while True:
            inner = [
                child
                for child in written_children(node)
                if child.end_byte > self._begin and child.start_byte < self._stop
            ]
            exact = node.start_byte == self._begin and node.end_byte in ends
            inmost = self._variable(node) or not (len(inner) == 1 and inner[0].is_named)
            if exact and inmost and (node.parent is not None or len(inner) < 2):
                return [node]
            if len(inner) != 1:
                whole = inner and inner[0].start_byte == self._begin and inner[-1].end_byte in ends
                return inner if whole and all(child.is_named or child.type in SEPARATORS for child in inner) else []
            node = inner[0]

    def _variable(self, node: Node) -> tuple[int, int, re.Match[str]] | None:
        at = node.start_byte - self._begin, node.end_byte - self._begin
        return next(((start, end, found) for start, end, *own, _, found in self._spans if (*own,) == at), None)

    def _node(self, node: Node, depth: int = 0) -> PatternNode:
        if depth > MAX_DEPTH:
            raise RequestError(f"the pattern has more than {MAX_DEPTH} nodes within each other")
        variable = self._variable(node)
        if variable is not None:
            start, end, found = variable
            if not (found[1] == "$$$" and LISTS.search(node.type) and written_children(node)[0].is_named):
                return PatternNode("", True, start, end, variable=found[2], sigil=found[1])
        start, end = self._offset(node.start_byte), self._offset(node.end_byte)
        supplied = node.start_byte >= self._stop
        children = written_children(node)
        inner = tuple(self._node(child, depth + 1) for child in children)
        if TEXTS.search(node.type) and not any(leaf.variable for child in inner for leaf in child.leaves()):
            inner = ()
        text = between(node, children, self._data) if inner else self._pattern[start:end].decode()
        text = ";" if supplied else text
        return PatternNode(node.type, node.is_named, start, end, text, inner, supplied=supplied)

    def _offset(self, at: int) -> int:
        """Returns the offset in the pattern of an offset in the parsed text."""
        at, moved = min(at, self._stop) - self._begin, 0
        for _, end, _, _, last, _ in self._spans:
            if last <= at:
                moved = end - last
        return at + moved


def written_children(node: Node) -> list[Node]:
    """Returns the children of a node without tokens that are blank, as line ends and dedents are."""
    return [child for child in node.children if child.start_byte < child.end_byte and not _is_blank(child)]


def _is_blank(node: Node) -> bool:
    if node.child_count:
        return False
    return not (node.text or b"").strip() if "text" in node.type else not node.type.strip()


def between(node: Node, children: Sequence[Node], data: bytes) -> str:
    """Returns the text of a node outside its children, without blanks: tokens that the grammar hides.

    ``data`` is the text of the tree; ``Node.text`` would have to read it again.
    """
    position, out = node.start_byte, b""
    for child in children:
        out += data[position : child.start_byte]
        position = child.end_byte
    return _BLANKS.sub(b"", out + data[position : node.end_byte]).decode()
