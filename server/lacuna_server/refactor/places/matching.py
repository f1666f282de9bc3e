"""Structural patterns, matched by ast-grep in a process that can be killed.

ast-grep cannot be interrupted, and some texts make its grammars run for ever. So this module runs as a program: it
reads a question a line and answers it in a line, and the system's timer ends it where one takes too long.
"""

import re
import signal
import sys

import msgspec
from ast_grep_py import Pattern, SgNode, SgRoot

VARIABLE = re.compile(r"(\${1,3})([A-Z_][A-Z0-9_]*)")
# On its own `f(x)` is a declaration to C.
CONTEXTS = {"c": "void f() { PATTERN; }"}
# A question may take so many seconds of the processor's time, and one more for every so many characters.
LEAST_SECONDS = 1.0
CHARACTERS_PER_SECOND = 500_000

Span = tuple[int, int]


class Question(msgspec.Struct, frozen=True):
    """Where does a ``pattern`` match in a ``text`` of a ``language``?"""

    text: str
    pattern: str
    language: str


class Answer(msgspec.Struct, frozen=True):
    """The matches: each a span, and the spans of its metavariables, in characters.

    ``broken`` says that the pattern does not parse, ``refused`` what ast-grep has against it.
    """

    matches: tuple[tuple[Span, dict[str, Span]], ...] = ()
    broken: bool = False
    refused: str = ""


def answer(question: Question) -> Answer:
    """What ast-grep says."""
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
    """The pattern as ast-grep wants it: where it reads otherwise on its own than in a function, in one."""
    if language not in CONTEXTS:
        return pattern
    context = CONTEXTS[language].replace("PATTERN", pattern)
    start = CONTEXTS[language].index("PATTERN")
    names = VARIABLE.sub(lambda variable: "x" * len(variable[0]), context)
    node = SgRoot(names, language).root()
    while (node.range().start.index, node.range().end.index) != (start, start + len(pattern)):
        around = (child for child in node.children() if child.range().start.index <= start < child.range().end.index)
        inner = next(around, None)
        if inner is None:  # several statements, or a definition, which stand on their own
            return pattern
        node = inner
    return {"context": context, "selector": node.kind(), "strictness": "smart"}


def _is_broken(pattern: str, language: str) -> bool:
    """Whether a pattern has a syntax error, its metavariables taken for names."""
    return SgRoot(VARIABLE.sub("x", pattern), language).root().find(kind="ERROR") is not None


def _limit(seconds: float) -> None:
    """End this process once it has used so much of the processor's time; 0: never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def main() -> None:
    """Answer until nothing more is asked."""
    if hasattr(signal, "SIGVTALRM"):
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # a handler in Python would wait for ast-grep to return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides when it ends
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
