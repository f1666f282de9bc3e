"""Judges the answer to an instruction: is it an edit of the lines, and what should a person look at before taking it?

All ways to an edit (command line, editors, agents, HTTP) use this one judge. An answer is *refused* for what breaks the
file or is no edit of these lines, whatever was asked: a definition from beside comes again, an import is gone that the
file needs. What only the one who asked can know is a *warning* beside the diff: a name is gone, a comment, a line that
the instruction shares no word with. Both are the rest of a sentence that begins with "the new text".
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lacuna_model.editing.change import AskedChange, pieces
from lacuna_model.editing.names import BRINGS, COMMENT, Name, code
from lacuna_model.editing.prompts import AGAIN, ANSWER, BESIDE, THE_PART
from lacuna_model.editing.tidy import (
    FENCE,
    STRING,
    AnswerHunk,
    changes,
    is_blank,
    is_line_of,
    is_taken_up,
    split,
    tidied,
    words,
)
from lacuna_model.text.lines import with_feeds

_CONDITION = r"\b(?:if|unless|guard)\b"
_NUMBER, _NAME = r"(?<!\w)\d[\w.]*", r"[^\W\d]\w*"
# In these languages, functions of one name may have different parameters.
OVERLOADS = frozenset({"java", "csharp", "cpp", "kotlin", "typescript", "tsx"})
# So many characters make a line telling, so that it does not come again by chance.
TELLING = 10
# Of this many different words, at least such a share stays in an edit, and so many of the words of prose.
FEW_WORDS, WORDS_KEPT, PROSE_KEPT = 8, 0.3, 0.5
# Lines that may stand before several definitions: annotations, attributes, conditions of the preprocessor.
_MARKS = re.compile(r"@|#\[|\[|template\b|#\s*(?:if|el|end)|\}")
# In these languages, whole lines are often alike.
_OFTEN_ALIKE = frozenset({"html", "css"})
# What begins the definition of a type.
_TYPES = r"\b(?:class|struct|interface|enum|record|trait|object|module|namespace)"
_NO_NAMES = frozenset({"import", "from", "as", "use", "require", "static", "const", "package", "using", "namespace"})
# What alone changes where an instruction is about the form of code: tokens of these.
_FORMS = {
    r"\b(?:curly )?braces?\b": r"[{}]",
    r"\bsemicolons?\b": r";",
    r"\bparenthes[ei]s\b": r"[()]",
    r"\bquot(?:e|es|ing)\b": r"[\"'`]",
    r"\btrailing commas?\b": r",",
}
# Of prose: headings, blocks of code, items of lists; and code, addresses, placeholders and numbers in a text.
_HEADING = re.compile(r"^(#{1,6})\s+\S", re.MULTILINE)
_BLOCK = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S", re.MULTILINE)
_MARKED = re.compile(
    r"(?<!`)`[^`\n]+`(?!`)|\bhttps?://[^\s)>\]\"']+|\b[\w.+-]+@[\w-]+\.[\w.]+|\{\{?\w+\}?\}|%[sd]\b|\$\{?\w+\}?|"
    r"\b\d\d+\b"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """The text that takes the place of the lines with warnings, or None and ``why`` the answer is refused."""

    text: str | None
    why: str = ""
    warnings: tuple[str, ...] = ()


Rule = Callable[[AskedChange, str], Iterator[str]]


def accepted_text(change: AskedChange, answer: str, is_valid: Callable[[str], bool]) -> Judged:
    """The text that takes the place of the lines: of what can be made of the answer, that with the fewest warnings.

    What nobody asked for is taken out of the answer, as far as the text ``is_valid`` then.
    """
    why, found = "", list[Judged]()
    for new in filter(is_valid, dict.fromkeys(tidied(change, answer))):
        wrong = fault(change, new) if new != change.old else ""
        why = why or wrong
        if not wrong:
            found.append(Judged(new, "", warnings(change, new)))
            if not found[-1].warnings:
                break
    return min(found, key=lambda one: len(one.warnings), default=Judged(None, why or "is no valid edit"))


def fault(change: AskedChange, new: str) -> str:
    """Why ``new`` is no edit of the lines, whatever was asked; "" where it may be one."""
    rules = (_question, _needed, _repeated, _repeated_lines, _imports)
    return next((wrong for rule in rules for wrong in rule(change, new)), "")


def warnings(change: AskedChange, new: str) -> tuple[str, ...]:
    """What a person should look at before taking ``new``: one warning of each kind, the most telling first."""
    if new == change.old:
        return ()
    own = _OF_PROSE if change.is_prose else _OF_CODE
    found = (next(rule(change, new), "") for rule in (_names_lost, *own, _another_text))
    return tuple(filter(None, found))


def _question(change: AskedChange, new: str) -> Iterator[str]:
    """Words of the question, where the model went on after its answer."""
    if any(said in new and said not in change.old for said in (THE_PART, BESIDE, ANSWER, AGAIN)):
        yield "repeats the question"


def _num_fences(text: str) -> int:
    return sum(bool(FENCE.match(line)) for line in split(text))


def _gone(change: AskedChange, new: str) -> list[Name]:
    """The names that the lines define and the new text does not, but for those that the instruction says.

    A name in another form (``getUser``, ``get_user``) is there, and so is a value that is local to a new definition and
    that no text beside the lines uses.
    """
    found = change.names_of(new)
    left, forms = Counter(name.text for name in found), {tuple(pieces(name.text)) for name in found}
    gone = []
    for name in change.names:
        left[name.text] -= 1
        if left[name.text] >= 0 or change.asked.says(name.text) or tuple(pieces(name.text)) in forms:
            continue
        word = rf"(?<![\w.]){re.escape(name.text)}\b"
        moved = re.search(rf"{word}\s*(?::[^=\n]*)?=(?!=)", new) and not re.search(word, change.before + change.after)
        if name.local or not moved:
            gone.append(name)
    return gone


def _needed(change: AskedChange, new: str) -> Iterator[str]:
    """Names that are gone and that the text still uses: those of a file anywhere, local ones in their function."""
    if change.language is None or change.is_configuration:
        return
    for name in _gone(change, new):
        rest = change.text[change.end : name.until].decode(errors="replace")
        beside = f"{new}\n{rest}" if name.local else change.before + change.after
        if (name.local or not name.around) and re.search(rf"(?<!\w){re.escape(name.text)}(?!\w)", beside):
            yield f"no longer defines {name.text}, which the file still uses"


def _repeated(change: AskedChange, new: str) -> Iterator[str]:
    """Names that the text defines beside the lines, and the new text again."""
    beside = {(name.around, name.text): name for name in change.outside if not name.local}
    more = Counter((name.around, name.text) for name in change.names_of(new))
    more.subtract((name.around, name.text) for name in change.names)
    overloads = change.language is not None and change.language.name in OVERLOADS
    for name in change.names_of(new):
        key = name.around, name.text
        if name.local or more[key] <= 0 or change.asked.says(name.text):
            continue
        if re.search(rf"{_TYPES} {re.escape(name.text)}\b", name.head) and name.text in name.around:
            yield f"defines {name.text} again, in which the lines stand"
        if key in beside and (not overloads or _types(name) == _types(beside[key])):
            yield f"defines {name.text} again, which stands beside the lines"


def _types(name: Name) -> list[str]:
    """The types of a function's parameters, as far as a text tells them."""
    found = re.match(r"[^{=;]*?\((.*?)\)\s*(?:[{:=;]|throws\b|where\b|const\b|$)", name.code.partition(name.text)[2])
    parameters = [one.strip() for one in found[1].split(",")] if found else []
    return [one.rpartition(":")[2] if ":" in one else one.rpartition(" ")[0] or one for one in parameters]


def _repeated_lines(change: AskedChange, new: str) -> Iterator[str]:
    """Lines that bring names, comments and prose, which stand beside the lines."""
    known = Counter(line.strip() for line in split(change.old))
    lines = [*split(change.before), *split(change.after)]
    beside = {line.strip() for line in lines}
    code_too = change.language is not None and not (change.is_configuration or change.language.name in _OFTEN_ALIKE)
    outer = [line for line in lines if change.is_prose or (code_too and not (line[:1].isspace() or _MARKS.match(line)))]
    outermost = {line.strip() for line in outer}
    more = {line.strip() for hunk in changes(change.old, new) if len(hunk.new) > len(hunk.old) for line in hunk.new}
    for line, count in Counter(line.strip() for line in split(new)).items():
        unasked = not change.asked.comments if COMMENT.match(line) else line in outermost & more
        telling = (
            BRINGS.match(line) or (change.is_prose and re.match(r"#+ \w", line)) or (len(line) >= TELLING and unasked)
        )
        if telling and line in beside and count > known[line]:
            yield f"repeats a line from beside: {line}"


def _imports(change: AskedChange, new: str) -> Iterator[str]:
    """Lines that bring names which the text still uses."""
    if change.is_prose:
        return
    lines = [line for text in (change.before, new, change.after) for line in split(text)]
    rest = "".join(line for line in lines if not BRINGS.match(line))
    brought = {word for line in lines if BRINGS.match(line) for word in re.findall(r"\w+", line)}
    for line in split(change.old):
        named = [word for word in re.findall(r"\w+", line) if word not in _NO_NAMES]
        if not BRINGS.match(line) or brought.issuperset(named) or any(map(change.asked.says, named)):
            continue
        if re.search(rf"\b{named[-1]}\b", rest):
            yield f"leaves out a line that is still needed: {line.strip()}"


def _names_lost(change: AskedChange, new: str) -> Iterator[str]:
    """Names that are gone; whether they were to go, only the one who asked knows."""
    for name in _gone(change, new):
        if not name.local:
            yield f"no longer defines {name.text}"


def _lines_lost(change: AskedChange, new: str) -> Iterator[str]:
    """Lines that are gone and whose words no changed line has, definitions of a line each that are joined, comments."""
    asked, found = change.asked, changes(change.old, new)
    if asked.less:
        return
    changed = [line for hunk in found for line in hunk.new]
    fresh = [line for line in changed if line.strip() and not is_line_of(line, change.old)]
    comments = asked.translates or asked.corrects or (asked.comments and not asked.adds)
    others = [line for line in fresh if COMMENT.match(line)]
    for hunk in found:
        for line in hunk.old:
            if not line.strip() or is_line_of(line, new):
                continue
            gone = hunk.kind == "delete" and not is_taken_up([line], changed)
            lost = [words(line) - words(other) for other in others]
            renamed = any(one and all(map(asked.says, one)) for one in lost)
            if COMMENT.match(line) and not (comments or renamed):
                yield f"{'changes' if others else 'leaves out'} a comment: {line.strip()}"
            elif gone or not fresh or _joins(change, hunk) or (BRINGS.match(line) and len(hunk.new) < len(hunk.old)):
                yield f"leaves out a line: {line.strip()}"


def _strings(change: AskedChange, new: str) -> Iterator[str]:
    """Strings that say something else, of which the instruction says nothing."""
    if change.asked.translates or change.asked.corrects or change.is_configuration:
        return
    for hunk in changes(change.old, new):
        said, now = (_said("".join(lines)) for lines in (hunk.old, hunk.new))
        differ = said and now and said != now and re.search(r"[^\W\d_]", said + now)
        if differ and len(hunk.old) == len(hunk.new) and not change.asked.shares(f"{said} {now}"):
            yield f"changes what a string says: {hunk.new[0].strip()}"


def _said(code: str) -> str:
    """The text of the strings in some code, without blanks and what is put into them."""
    return re.sub(r"\$?\{[^{}]*\}|\s", "", "".join(match[0][1:-1] for match in re.finditer(STRING, code)))


def _joins(change: AskedChange, hunk: AnswerHunk) -> bool:
    """Whether a hunk has fewer lines in the place of several definitions of a line each."""
    short = [name.code for name in change.names if not name.local and name.code == name.head]
    defining = sum(any(code in " ".join(line.split()) for code in short) for line in hunk.old)
    return bool(hunk.new) and defining > 1 and len(hunk.new) < len(hunk.old)


def _added(change: AskedChange, new: str) -> Iterator[str]:
    """Words that are gone, where something is to be added."""
    if not change.asked.adds or change.asked.less or change.asked.translates:
        return
    found = [hunk for hunk in changes(change.old, new) if not is_blank(hunk.old)]
    changed = _words("".join(line for hunk in found for line in hunk.new))
    for hunk in found:
        for line in hunk.old:
            if not is_line_of(line, new) and not _words(line) <= (_words("".join(hunk.new)) if hunk.new else changed):
                yield f"changes a line, and the instruction adds: {line.strip()}"


def _words(text: str) -> set[str]:
    """The words and operators of a text, without those that stand for nothing."""
    return set(re.findall(r"\w+|[^\w\s,;:'\"(){}\[\]]", text)) - {"_"}


def _beside(change: AskedChange, new: str) -> Iterator[str]:
    """Lines that share no word with the instruction and lose some of their own, where other changes share one."""
    found = [hunk for hunk in changes(change.old, new) if not is_blank(hunk.lines)]
    apart = [hunk for hunk in found if not change.asked.shares("".join(hunk.lines))]
    for hunk in apart if len(apart) < len(found) and not change.asked.corrects else ():
        if not _words("".join(hunk.old)) <= _words("".join(hunk.new)):
            first = next(line for line in hunk.lines if line.strip())
            yield f"changes a line that the instruction does not name: {first.strip()}"


def _others(change: AskedChange, new: str) -> Iterator[str]:
    """Definitions in which no name is that the instruction says, where it says names of others; a function itself,
    where its call is to change.
    """
    said = {name.text for name in change.names if change.asked.says(name.text)}
    now = {(name.around, name.text): name.code for name in change.names_of(new)}
    for name in change.names if said else ():
        code = now.get((name.around, name.text), name.code)
        if code == name.code:
            continue
        if name.text == change.asked.called:
            yield f"changes {name.text}, and the instruction is about its call"
        elif said.isdisjoint(_words(f"{name.code} {code}")):
            yield f"changes {name.text}, and the instruction is about {min(said)}"


def _renamed(change: AskedChange, new: str) -> Iterator[str]:
    """A name that the instruction says, in some places still, where another one that it says stands in others."""
    said = [token for token in dict.fromkeys(_tokens(change, change.old)) if change.asked.says(token)]
    old, now = Counter(_tokens(change, change.old)), Counter(_tokens(change, new))
    fresh = [token for token in now if token not in old and change.asked.says(token)]
    for token in said:
        if fresh and 0 < now[token] < old[token]:
            yield f"has {token} in some places and {fresh[0]} in others"


def _tokens(change: AskedChange, text: str) -> list[str]:
    """The names in the code of lines; without a grammar all words."""
    found = code(change.whole(text), change.language, change.span(text)) if change.language is not None else None
    tokens = [token.decode(errors="replace") for token in found] if found is not None else re.findall(r"\w+", text)
    return [word for word in tokens if re.fullmatch(_NAME, word)]


def _form_alone(change: AskedChange, new: str) -> Iterator[str]:
    """Other changes than of form, where the instruction is about braces, semicolons or quotes."""
    if change.language is None:
        return
    for said, marks in _FORMS.items():
        if re.search(said, change.asked.instruction, re.IGNORECASE):
            texts = [code(text, change.language) or [] for text in (change.text, change.whole(new))]
            bare = [re.sub(marks, "", b"".join(one).decode(errors="replace")) for one in texts]
            if bare[0] != bare[1]:
                yield "changes more than the form of the code"


def _numbers(change: AskedChange, new: str) -> Iterator[str]:
    """Lines in which a number alone is new, or another one beside other changes, and the instruction names neither."""
    if change.language is None or change.is_configuration or change.asked.corrects:
        return
    known = set(re.findall(_NUMBER, f"{change.old} {change.asked.instruction}"))
    found = changes(change.old, new)
    for hunk in found:
        for before, after in zip(hunk.old, hunk.new, strict=False) if len(hunk.old) == len(hunk.new) else ():
            numbers, numbers_now = re.findall(_NUMBER, before), re.findall(_NUMBER, after)
            fresh = set(numbers_now) - known and (len(found) > 1 or len(numbers_now) > len(numbers))
            same = re.findall(_NAME, before) == re.findall(_NAME, after)
            if fresh and same and not change.asked.shares(before):
                yield f"changes a number that the instruction does not name: {after.strip()}"


def _conditions(change: AskedChange, new: str) -> Iterator[str]:
    """Lines that now stand under an ``if``, of which the instruction does not speak."""
    if change.asked.says("if") or change.asked.says("only"):
        return
    lines, old = set(split(new)), {line.strip() for line in split(change.old)}
    conditional = any(line.strip() not in old and re.match(r"\s*if\b", line) for line in lines)
    for line in split(change.old):
        if conditional and line not in lines and re.search(r"\w", line) and is_line_of(line, new):
            yield f"puts lines under a condition: {line.strip()}"


def _conditions_lost(change: AskedChange, new: str) -> Iterator[str]:
    """Fewer conditions, where the instruction neither asks for less nor speaks of one."""
    if change.asked.less or change.asked.says("if") or change.asked.says("condition"):
        return
    if len(re.findall(_CONDITION, new)) < len(re.findall(_CONDITION, change.old)):
        lines = [line for line in split(change.old) if re.search(_CONDITION, line)]
        lost = next((line for line in lines if not is_line_of(line, new)), lines[0])
        yield f"leaves out a condition: {lost.strip()}"


def _another_text(change: AskedChange, new: str) -> Iterator[str]:
    """Another text in the place of the lines, or most of it gone."""
    if not new.strip():
        yield "is empty"
        return
    old, now = (re.findall(r"\w+", text) for text in (change.old, new))
    different = {word.lower() for word in old}
    if change.asked.less or len(different) < FEW_WORDS:
        return
    if change.is_prose and len(now) < PROSE_KEPT * len(old):
        yield "leaves out most of the text"
    least = PROSE_KEPT if change.is_prose and change.asked.corrects else WORDS_KEPT
    if not change.asked.translates and len(different & {word.lower() for word in now}) < least * len(different):
        yield "is another text and no edit of the lines"


def _headings(change: AskedChange, new: str) -> Iterator[str]:
    old, now = (Counter(_HEADING.findall(_BLOCK.sub("", text))) for text in (change.old, new))
    if now - old:
        yield "has a heading that the lines do not have"
    elif old - now and not change.asked.less:
        yield "leaves out a heading"


def _blocks(change: AskedChange, new: str) -> Iterator[str]:
    old, now = ([found[2].strip() for found in _BLOCK.finditer(text)] for text in (change.old, new))
    gone, fresh = (Counter(re.findall(r"\w+|[^\w\s]", "\n".join(texts))) for texts in (old, now))
    if _num_fences(new) > _num_fences(change.old):
        yield "has a block of code that the lines do not have"
    elif not all(map(change.asked.says, (gone - fresh) + (fresh - gone))):
        yield "changes a block of code"


def _marked(change: AskedChange, new: str) -> Iterator[str]:
    """Code, addresses and numbers."""
    for one in _MARKED.findall(change.old) if not change.asked.less else ():
        if one not in new and not any(map(change.asked.says, re.findall(r"\w+", one))):
            yield f"leaves out {one}"


def _passages(change: AskedChange, new: str) -> Iterator[str]:
    """Paragraphs, items of lists that stay lists, and lines of which no word is left."""
    texts = change.old, new
    items, items_now = (len(_ITEM.findall(text)) for text in texts)
    paragraphs, paragraphs_now = (sum(map(bool, re.split(r"\n\s*\n", with_feeds(text).strip()))) for text in texts)
    if not change.asked.less and (paragraphs_now < paragraphs or 0 < items_now < items):
        yield "leaves out a paragraph or an item"
    lines, lines_now = ([line for line in split(text) if line.strip()] for text in texts)
    for line in lines if len(lines_now) < len(lines) and not (change.asked.less or change.asked.translates) else ():
        if words(line) and words(line).isdisjoint(words(new)):
            yield f"leaves out a line: {line.strip()}"
    if paragraphs_now > paragraphs and not change.asked.adds and not items_now > items:
        yield "has a paragraph that the lines do not have"


_OF_CODE: tuple[Rule, ...] = (
    _lines_lost,
    _strings,
    _added,
    _others,
    _renamed,
    _beside,
    _form_alone,
    _numbers,
    _conditions,
    _conditions_lost,
)
_OF_PROSE: tuple[Rule, ...] = (_headings, _blocks, _marked, _passages)
