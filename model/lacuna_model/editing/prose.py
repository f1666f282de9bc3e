"""What an edit of prose keeps: headings, paragraphs, blocks of code, addresses, numbers, and most of the words."""

import re
from collections import Counter

from lacuna_model.editing.change import AskedChange

_HEADING = re.compile(r"^(#{1,6})\s+\S", re.MULTILINE)
_BLOCK = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_ADDRESS = re.compile(r"\bhttps?://[^\s)>\]\"']+|\b[\w.+-]+@[\w-]+\.[\w.]+|\{\{?\w+\}?\}|%[sd]\b|\$\{?\w+\}?")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S", re.MULTILINE)
# A text that nobody asked to shorten or to extend keeps at least and at most such a share of its words.
LEAST_WORDS, MAX_WORDS = 0.5, 2.0
# Of the different words of a text that is corrected, at least such a share stays; of any text but a translation, this.
KEPT_CORRECTED, KEPT, FEW_WORDS = 0.6, 0.2, 8


def prose_fault(change: AskedChange, new: str) -> str:
    """What an edit of prose has lost or added; "" for other texts, and where nothing is wrong."""
    if not change.is_prose:
        return ""
    rules = (_headings, _blocks, _marked, _items, _paragraphs, _words)
    return next((wrong for rule in rules if (wrong := rule(change, new))), "")


def _headings(change: AskedChange, new: str) -> str:
    old, now = (Counter(_HEADING.findall(_BLOCK.sub("", text))) for text in (change.old, new))
    if change.asked.headings or old == now:
        return ""
    if sum(now.values()) > sum(old.values()):
        return "has a heading that the lines do not have"
    return "" if change.asked.less else "leaves out a heading or changes its level"


def _blocks(change: AskedChange, new: str) -> str:
    old, now = ([found[2].strip() for found in _BLOCK.finditer(text)] for text in (change.old, new))
    if change.asked.fences or old == now or (change.asked.less and len(now) < len(old)):
        return ""
    gone, fresh = (Counter(re.findall(r"\w+|[^\w\s]", "\n".join(texts))) for texts in (old, now))
    if len(old) == len(now) and all(map(change.asked.says, (gone - fresh) + (fresh - gone))):
        return ""
    return "changes a block of code" if old else "has a block of code that the lines do not have"


def _marked(change: AskedChange, new: str) -> str:
    """Code, addresses and numbers."""
    if change.asked.less:
        return ""
    for kind in (_SPAN, _ADDRESS, _NUMBER):
        for one in kind.findall(change.old):
            if (
                one not in new
                and not any(map(change.asked.says, re.findall(r"\w+", one)))
                and not _is_form(change, one)
            ):
                return f"leaves out {one}"
    return ""


def _is_form(change: AskedChange, number: str) -> bool:
    """Whether a number may be written otherwise: as a word, in another form of dates, as a mark of a list."""
    form = change.asked.form or change.asked.lists or change.asked.translates
    return number.replace(":", "").replace(",", "").replace(".", "").isdigit() and (form or len(number) < 2)


def _items(change: AskedChange, new: str) -> str:
    old, now = (len(_ITEM.findall(text)) for text in (change.old, new))
    if change.asked.less or change.asked.lists or change.asked.more:
        return ""
    return "leaves out an item of a list" if now < old else ""


def _paragraphs(change: AskedChange, new: str) -> str:
    old, now = (
        len([one for one in re.split(r"\n\s*\n", text.replace("\r\n", "\n")) if one.strip()])
        for text in (change.old, new)
    )
    if change.asked.less or change.asked.lists or change.asked.headings:
        return ""
    if now < old and not change.asked.another_shape:
        return "leaves out a paragraph"
    return "has a paragraph that nobody asked for" if now > old and not change.asked.more else ""


def _words(change: AskedChange, new: str) -> str:
    asked = change.asked
    old, now = (re.findall(r"\w+", text) for text in (change.old, new))
    if len(old) < FEW_WORDS:
        return ""
    if len(now) < LEAST_WORDS * len(old) and not asked.less:
        return "leaves out most of the text"
    if len(now) > MAX_WORDS * len(old) + FEW_WORDS and not asked.more:
        return "adds a text that nobody asked for"
    if asked.translates:
        return ""
    words = {word.lower() for word in old}
    kept = len(words & {word.lower() for word in now})
    least = KEPT_CORRECTED if asked.corrects else KEPT
    return "is another text and no edit of the lines" if kept < least * len(words) else ""
