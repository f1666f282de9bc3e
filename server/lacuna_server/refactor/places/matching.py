"""Matches structural patterns with ast-grep, in a process that can be killed.

ast-grep cannot be interrupted, and some texts make its grammars run forever. So this module runs as a program: it reads
one question per line and answers it in one line, and a system timer kills it where a question takes too long.
"""

import re
import signal
import sys

import msgspec
from ast_grep_py import Pattern, SgNode, SgRoot

VARIABLE = re.compile(r"(\${1,3})([A-Z_][A-Z0-9_]*)")
# Outside a function, C parses `f(x)` as a declaration.
CONTEXTS = {"c": "void f() { PATTERN; }"}
# The CPU time of a question: at least so many seconds, and one more second for so many characters.
LEAST_SECONDS = 1.0
CHARACTERS_PER_SECOND = 500_000

Span = tuple[int, int]


class Question(msgspec.Struct, frozen=True):
    """Asks for the matches of a ``pattern`` in a ``text`` of a ``language``."""

    text: str
    pattern: str
    language: str


class Answer(msgspec.Struct, frozen=True):
    """The matches: the span of each, and the spans of its metavariables, in characters.

    ``broken`` tells that the pattern does not parse; ``refused`` is ast-grep's error message.
    """

    matches: tuple[tuple[Span, dict[str, Span]], ...] = ()
    broken: bool = False
    refused: str = ""


def answer(question: Question) -> Answer:
    """Answers a question with ast-grep."""
    pattern, language = question.pattern, question.language
    try:
        nodes = SgRoot(question.text, language).root().find_all(pattern=_in_context(pattern, language))
    except RuntimeError as error:
        causes = [line for line in str(error).split("Stack backtrace")[0].splitlines() if line.strip()]
        return Answer(refused=causes[-1].split(":", 1)[-1].strip())
    if not nodes and _is_broken(pattern, language):
        return Answer(broken=True)
    variables = VARIABLE.findall(pattern)
    return Answer(tuple((_span(node), dict(_captures(node, variables))) for node in nodes))


def _captures(node: SgNode, variables: list[tuple[str, str]]) -> list[tuple[str, Span]]:
    start = node.range().start.index
    found = []
    for sigil, name in variables:
        if sigil == "$$$":
            nodes = node.get_multiple_matches(name)
            found.append((name, (_span(nodes[0])[0], _span(nodes[-1])[1]) if nodes else (start, start)))
        elif (bound := node.get_match(name)) is not None:
            found.append((name, _span(bound)))
    return found


def _span(node: SgNode) -> Span:
    place = node.range()
    return place.start.index, place.end.index


def _in_context(pattern: str, language: str) -> str | Pattern:
    """Returns the pattern for ast-grep; in a language of ``CONTEXTS`` with the function around it as its context."""
    if language not in CONTEXTS:
        return pattern
    context = CONTEXTS[language].replace("PATTERN", pattern)
    start = CONTEXTS[language].index("PATTERN")
    names = VARIABLE.sub(lambda variable: "x" * len(variable[0]), context)
    node = SgRoot(names, language).root()
    while (node.range().start.index, node.range().end.index) != (start, start + len(pattern)):
        around = (child for child in node.children() if child.range().start.index <= start < child.range().end.index)
        inner = next(around, None)
        if inner is None:  # several statements, or a definition: they need no context
            return pattern
        node = inner
    return {"context": context, "selector": node.kind(), "strictness": "smart"}


def _is_broken(pattern: str, language: str) -> bool:
    """Returns whether a pattern has a syntax error, with its metavariables read as names."""
    return SgRoot(VARIABLE.sub("x", pattern), language).root().find(kind="ERROR") is not None


def _limit(seconds: float) -> None:
    """Lets the system kill this process once it has used so many seconds of CPU time; 0: never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def main() -> None:
    """Answers questions until the input ends."""
    if hasattr(signal, "SIGVTALRM"):
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # a handler in Python would wait for ast-grep to return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process decides when this one ends
    decoder, encoder = msgspec.json.Decoder(Question), msgspec.json.Encoder()
    for line in sys.stdin.buffer:
        question = decoder.decode(line)
        _limit(LEAST_SECONDS + len(question.text) / CHARACTERS_PER_SECOND)
        found = encoder.encode(answer(question))
        _limit(0)
        sys.stdout.buffer.write(found + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
