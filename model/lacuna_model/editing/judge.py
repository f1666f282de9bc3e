"""Judges the answer to an instruction: does it keep what nobody asked to change?

All ways to an edit (command line, editors, agents, HTTP) use this one judge. Each rule returns what is wrong as the
rest of a sentence that begins with "the new text", "" where nothing is.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

from lacuna_model.editing.change import AskedChange
from lacuna_model.editing.lines import BRINGS, COMMENT, AnswerHunk, bound, code, hunks, is_blank, split, used
from lacuna_model.editing.names import Name, names
from lacuna_model.editing.part import AGAIN, ANSWER, BESIDE, THE_PART
from lacuna_model.editing.prose import prose_fault
from lacuna_model.editing.tidy import FENCE, tidied
from lacuna_model.text import diff

_NUMBER, _NAME = r"(?<!\w)\d[\w.]*", r"[^\W\d]\w*"
# In these languages, functions of one name may have different parameters.
OVERLOADS = frozenset({"java", "csharp", "cpp", "kotlin", "typescript", "tsx"})
# Of this many different words, at least such a share stays in code.
FEW_WORDS, WORDS_KEPT = 8, 0.3
# So many characters make a line telling, so that it does not come again by chance.
TELLING = 10
# Of the tokens of code to which something is added, at least such a share stays; of the letters of a corrected word.
ADDED_TO, LETTERS_KEPT = 0.7, 0.6
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


def accepted_text(change: AskedChange, answer: str, is_valid: Callable[[str], bool]) -> tuple[str | None, str]:
    """The text that takes the place of the lines, and "", or None and what is wrong with the answer.

    What nobody asked for is taken out of the answer, as far as the text ``is_valid`` then.
    """
    why = ""
    for new in filter(is_valid, dict.fromkeys(tidied(change, answer))):
        wrong = fault(change, new) if new != change.old else ""
        if not wrong:
            return new, ""
        why = why or wrong
    return None, why or "is no valid edit"


def fault(change: AskedChange, new: str) -> str:
    """What is wrong with ``new`` in the place of the lines; "" where nothing is."""
    if not new.strip() and not change.asked.less:
        return "is empty"
    rules = (
        _fence,
        _question,
        _lost,
        _repeated,
        _repeated_lines,
        _imports,
        _undeclared,
        _only_less,
        _code_changed,
        _comments_lost,
        _renamed,
        _called,
        _others,
        _form_alone,
        _added,
        _numbers,
        _skips,
        _spelled,
        prose_fault,
        _other_text,
    )
    return next((wrong for rule in rules if (wrong := rule(change, new))), "")


def _fence(change: AskedChange, new: str) -> str:
    """Fences of Markdown that the instruction does not ask for."""
    if change.asked.fences:
        return ""
    old, now = (sum(bool(FENCE.match(line)) for line in split(text)) for text in (change.old, new))
    return "has a code fence that the lines do not have" if now > old else ""


def _question(change: AskedChange, new: str) -> str:
    """Words of the question, where the model went on after its answer."""
    repeats = any(said in new and said not in change.old for said in (THE_PART, BESIDE, ANSWER, AGAIN))
    return "repeats the question" if repeats else ""


def _lost(change: AskedChange, new: str) -> str:
    """Names that the lines define, and the new text does not."""
    asked, found = change.asked, change.names_of(new)
    left = Counter(name.text for name in found)
    gone: list[Name] = []
    for name in change.names:
        left[name.text] -= 1
        if left[name.text] < 0 and not (asked.says(name.text) and asked.changes_names):
            gone.append(name)
    gone = [name for name in gone if (_is_used(change, name, new) if name.local else not _is_moved(change, name, new))]
    fresh = sum(count for count in left.values() if count > 0)
    others = asked.renames and (asked.renamed is None or asked.renamed[0] not in change.old) and fresh >= len(gone)
    if not gone or asked.fewer_names or others:
        return ""
    if asked.another_shape and all(name.around for name in gone):
        return ""
    return f"no longer defines {gone[0].text}"


def _is_used(change: AskedChange, name: Name, new: str) -> bool:
    """Whether the function around a local name uses it after the lines, or in the new text."""
    rest = change.text[change.end : name.until].decode(errors="replace")
    return bool(re.search(rf"(?<!\w){re.escape(name.text)}(?!\w)", f"{new}\n{rest}"))


def _is_moved(change: AskedChange, name: Name, new: str) -> bool:
    """Whether a value is now local to a definition of the new text, and no text beside the lines uses it."""
    word = rf"(?<![\w.]){re.escape(name.text)}\b"
    return bool(re.search(rf"{word}\s*(?::[^=\n]*)?=(?!=)", new)) and not re.search(word, change.before + change.after)


def _repeated(change: AskedChange, new: str) -> str:
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
            return f"defines {name.text} again, in which the lines stand"
        if key in beside and (not overloads or _types(name) == _types(beside[key])):
            return f"defines {name.text} again, which stands beside the lines"
    return ""


def _types(name: Name) -> list[str]:
    """The types of a function's parameters, as far as a text tells them."""
    found = re.match(r"[^{=;]*?\((.*?)\)\s*(?:[{:=;]|throws\b|where\b|const\b|$)", name.code.partition(name.text)[2])
    parameters = [one.strip() for one in found[1].split(",")] if found else []
    return [one.rpartition(":")[2] if ":" in one else one.rpartition(" ")[0] or one for one in parameters]


def _repeated_lines(change: AskedChange, new: str) -> str:
    """Lines that bring names, comments and prose, which stand beside the lines."""
    known = Counter(line.strip() for line in split(change.old))
    lines = [line for text in (change.before, change.after) for line in split(text)]
    beside = {line.strip() for line in lines}
    code_too = change.language is not None and not (change.is_configuration or change.language.name in _OFTEN_ALIKE)
    plain = [line for line in lines if change.is_prose or (code_too and not (line[:1].isspace() or _MARKS.match(line)))]
    outermost = {line.strip() for line in plain}
    more = {line.strip() for hunk in hunks(change.old, new) if len(hunk.new) > len(hunk.old) for line in hunk.new}
    for line, count in Counter(line.strip() for line in split(new)).items():
        telling = (
            BRINGS.match(line)
            or (change.is_prose and re.match(r"#+ \w", line))
            or (len(line) >= TELLING and line in outermost & more)
        )
        if telling and line in beside and count > known[line]:
            return f"repeats a line from beside: {line}"
    return ""


def _imports(change: AskedChange, new: str) -> str:
    """Lines that bring names which the text still uses."""
    if change.is_prose:
        return ""
    lines = [line for text in (change.before, new, change.after) for line in split(text)]
    rest = "".join(line for line in lines if not BRINGS.match(line))
    brought = {word for line in lines if BRINGS.match(line) for word in re.findall(r"\w+", line)}
    for line in split(change.old):
        words = [word for word in re.findall(r"\w+", line) if word not in _NO_NAMES]
        if not BRINGS.match(line) or brought.issuperset(words) or change.asked.fewer_names or _names_one(change, words):
            continue
        if "include" in line or re.search(rf"\b{words[-1]}\b", rest):
            return f"leaves out a line that is still needed: {line.strip()}"
    return ""


def _names_one(change: AskedChange, words: Sequence[str]) -> bool:
    return any(map(change.asked.says, words))


def _undeclared(change: AskedChange, new: str) -> str:
    """Names that the lines declare for themselves, and that the new text only uses."""
    if change.language is None or change.is_configuration:
        return ""
    own = {name.text for name in names(change.text, change.start, change.end, change.language, within=True)}
    text, span = change.whole(new), change.span(new)
    gone = (own & used(text, change.language, span)) - bound(text, change.language, span)
    beside = f"{change.before}{change.after}"
    left = (name for name in sorted(gone) if not re.search(rf"\b{re.escape(name)}\b", beside))
    return next((f"uses {name}, which it no longer declares" for name in left), "")


def _only_less(change: AskedChange, new: str) -> str:
    """Lines that are only left out, and definitions of a line each that are joined."""
    found = [hunk for hunk in hunks(change.old, new) if hunk.kind != "equal" and not is_blank((*hunk.old, *hunk.new))]
    joined = [*_joined(change, new)]
    gone = found if all(hunk.kind == "delete" for hunk in found) else joined
    if change.asked.less or change.asked.form or not gone or (gone is joined and change.asked.another_shape):
        return ""
    return f"leaves out a line: {next(line for line in gone[0].old if line.strip()).strip()}"


def _joined(change: AskedChange, new: str) -> Iterator[AnswerHunk]:
    """The hunks with fewer lines in the place of several definitions of a line each."""
    short = [name.at for name in change.names if not name.local and name.code == name.head]
    end = change.start
    for hunk in hunks(change.old, new):
        defining = 0
        for line in hunk.old:
            start, end = end, end + len(line.encode())
            defining += any(start <= at < end for at in short)
        if hunk.new and defining > 1 and len(hunk.new) < len(hunk.old):
            yield hunk


def _code_changed(change: AskedChange, new: str) -> str:
    """Code, where the instruction is about comments."""
    if change.is_prose or not change.asked.comments_alone:
        return ""
    same = code(change.whole(new), change.language) == code(change.text, change.language)
    return "" if same else "changes code, and the instruction is about comments alone"


def _comments_lost(change: AskedChange, new: str) -> str:
    """Comments that are gone, and where comments are to be added, any line that is not there as it was."""
    asked = change.asked
    if change.is_prose or asked.less or asked.translates or (asked.comments and not asked.adds):
        return ""
    kept, written = iter(split(new)), {line.strip() for line in split(new)}
    strict = asked.adds and asked.comments_alone
    for hunk in hunks(change.old, new):
        comments = any(map(COMMENT.match, hunk.new)) and not asked.adds
        for line in hunk.old:
            if strict and line.strip() and not any(other.startswith(line.rstrip()) for other in kept):
                return f"changes a line that should stay: {line.strip()}"
            if COMMENT.match(line) and not comments and line.strip() not in written:
                return f"leaves out a comment: {line.strip()}"
    return ""


def _renamed(change: AskedChange, new: str) -> str:
    """Other changes than of the name, where the instruction gives a name and another one for it."""
    asked, pair = change.asked, change.asked.renamed
    if pair is None or change.language is None or asked.more or re.search(r"\band\b|,|;", asked.instruction):
        return ""
    before, after = code(change.text, change.language), code(change.whole(new), change.language)
    if before is None or after is None or pair[0] not in change.old:
        return ""
    if len(before) != len(after):
        return "changes more than the name"
    for one, other in zip(before, after, strict=True):
        if one != other and pair[0].encode() not in one:
            return f"changes {one.decode(errors='replace')}, and the instruction is about {pair[0]}"
    written = " ".join(_written(change, new))
    left = re.search(rf"(?<![\w.]){re.escape(pair[0])}(?!\w)", written)
    return f"has {pair[0]} in some places and {pair[1]} in others" if left and "." not in asked.instruction else ""


def _called(change: AskedChange, new: str) -> str:
    """Another definition of the function whose call is to change."""
    name = change.asked.called
    old, now = ({one.code for one in found if one.text == name} for found in (change.names, change.names_of(new)))
    return f"changes {name}, and the instruction is about its call" if old - now else ""


def _others(change: AskedChange, new: str) -> str:
    """Definitions in which no name is that the instruction says, where it says names of others."""
    asked = change.asked
    said = {name.text for name in change.names if asked.says(name.text)}
    if not said or asked.everywhere or asked.form or asked.translates or asked.corrects:
        return ""
    now = {(name.around, name.text): name.code for name in change.names_of(new)}
    for name in change.names:
        code = now.get((name.around, name.text), name.code)
        if code != name.code and said.isdisjoint(_words(f"{name.code} {code}")):
            return f"changes {name.text}, and the instruction is about {min(said)}"
    return ""


def _form_alone(change: AskedChange, new: str) -> str:
    """Other changes than of form, where the instruction is about braces, semicolons or quotes."""
    if change.language is None or change.asked.more_than_form:
        return ""
    for said, marks in _FORMS.items():
        if re.search(said, change.asked.instruction, re.IGNORECASE):
            texts = [code(text, change.language) or [] for text in (change.text, change.whole(new))]
            bare = [re.sub(marks, "", b"".join(one).decode(errors="replace")) for one in texts]
            return "" if bare[0] == bare[1] else "changes more than the form of the code"
    return ""


def _added(change: AskedChange, new: str) -> str:
    """Code that is gone, where something is to be added or types are to be written."""
    asked = change.asked
    if not (asked.adds or asked.annotates) or asked.less or asked.another_shape or asked.translates:
        return ""
    old, now = _written(change, change.old), _written(change, new)
    if asked.annotates or asked.comments_alone:
        left = iter(now)
        gone = next((one for one in old if not any(one == other for other in left)), "")
        return f"leaves out {gone}, and the instruction only adds" if gone else ""
    found = hunks(change.old, new) if not change.is_prose else []
    changed = _words("".join(line for hunk in found if hunk.kind != "equal" for line in hunk.new))
    for hunk in found:
        if hunk.kind == "delete" and not is_blank(hunk.old) and not all(_is_line_of(line, new) for line in hunk.old):
            return f"leaves out a line, and the instruction adds: {hunk.old[0].strip()}"
        if hunk.kind == "replace" and not all(_words(line) <= changed for line in hunk.old):
            return "changes a line that should stay, and the instruction adds"
    few = len(diff.pairs(old, now)) < ADDED_TO * len(old)
    return "leaves out what stands there, and the instruction adds" if few else ""


def _numbers(change: AskedChange, new: str) -> str:
    """Lines in which a number alone is another one, and the instruction names neither it nor anything of the line."""
    if change.language is None or change.is_configuration or change.asked.corrects or change.asked.compares:
        return ""
    known = set(re.findall(_NUMBER, f"{change.old} {change.asked.instruction}"))
    for hunk in hunks(change.old, new):
        for before, after in zip(hunk.old, hunk.new, strict=False) if len(hunk.old) == len(hunk.new) else ():
            fresh = set(re.findall(_NUMBER, after)) - known
            same = re.findall(_NAME, before) == re.findall(_NAME, after)
            if fresh and same and not change.asked.shares(before):
                return f"changes a number that the instruction does not name: {after.strip()}"
    return ""


def _skips(change: AskedChange, new: str) -> str:
    """Lines that are only run under a condition, where something is required, which must not fail in silence."""
    if not change.asked.requires or change.language is None:
        return ""
    lines = set(split(new))
    moved = any(line not in lines and re.search(r"\w", line) and _is_line_of(line, new) for line in split(change.old))
    return "puts lines under a condition, and the instruction requires it" if moved else ""


def _is_line_of(line: str, new: str) -> bool:
    return line.strip() in {other.strip() for other in split(new)}


def _words(text: str) -> set[str]:
    """The words and operators of a text, without those that stand for nothing."""
    return set(re.findall(r"\w+|[^\w\s,;:'\"(){}\[\]]", text)) - {"_"}


def _written(change: AskedChange, text: str) -> list[str]:
    """The tokens of lines without their comments; without a grammar all words and signs."""
    if change.language is None:
        return re.findall(r"\w+|[^\w\s]", text)
    found = code(change.whole(text), change.language, change.span(text))
    return [token.decode(errors="replace") for token in found or []]


def _spelled(change: AskedChange, new: str) -> str:
    """Other changes than of letters, where mistakes of language are to be corrected in code."""
    if not change.asked.spells or change.is_prose or change.language is None:
        return ""
    old, now = _written(change, change.old), _written(change, new)
    alike = len(old) == len(now) and all(
        SequenceMatcher(None, one, other).ratio() > LETTERS_KEPT for one, other in zip(old, now, strict=True)
    )
    return "" if alike else "changes code, and the instruction is about mistakes of language"


def _other_text(change: AskedChange, new: str) -> str:
    """Another text in the place of the lines."""
    if change.is_prose or change.asked.less or change.asked.another_shape:
        return ""
    words = set(re.findall(r"\w+", change.old))
    kept = words & set(re.findall(r"\w+", new))
    other = len(words) >= FEW_WORDS and len(kept) < WORDS_KEPT * len(words)
    return "is another text and no edit of the lines" if other else ""
