"""What fills are checked in if no valid fill is found: a sound part of the text, else the text as it is."""

from lacuna_model.languages.language import Language
from lacuna_model.syntax.broken.part import Gap, Part
from lacuna_model.syntax.broken.sound_part import sound_part
from lacuna_model.syntax.broken.spared_part import spared_part
from lacuna_model.syntax.broken.tolerant import tolerant_part
from lacuna_model.syntax.lr.clock import Clock


class Fallbacks:
    """The fallbacks for one ``gap`` of a text, each offered once; none without a gap or a language.

    The fill is ``in_line`` if the gap's region takes only one line.
    """

    def __init__(self, text: bytes, gap: Gap | None, language: Language | None, clock: Clock, *, in_line: bool) -> None:
        self._text, self._gap, self._language, self._clock = text, gap, language, clock
        self._in_line = in_line
        self._offered: set[str] = set()

    def spared(self) -> Part | None:
        """Return the text without the statements that the grammar cannot read; None if it can read all, or for Python.

        Python has a compiler, which finds what is broken.
        """
        if self._gap is None or self._language is None or self._language.columns or "spared" in self._offered:
            return None
        self._offered.add("spared")
        return spared_part(self._text, self._gap, self._language, self._clock, in_line=self._in_line)

    def sound(self) -> Part | None:
        """Return the largest part of the text that is valid with a neutral fill; None without one."""
        if self._gap is None or self._language is None or "sound" in self._offered:
            return None
        self._offered.add("sound")
        if self._language.columns:
            return sound_part(self._text, self._gap, self._language, self._clock, in_line=self._in_line)
        return self.spared()

    def tolerant(self) -> Part | None:
        """Return the whole text with the errors that may stay in it; None if some line leaves none.

        None, too, for a fill of several lines: what they may repair is too much to guess.
        """
        if self._gap is None or self._language is None or "tolerant" in self._offered or not self._in_line:
            return None
        self._offered.add("tolerant")
        return tolerant_part(self._text, self._gap, self._language, self._clock, in_line=self._in_line)
