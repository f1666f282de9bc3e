"""Verification with a memory: each set of fills is checked once, until the document's rules change."""

from lacuna_model.core.constraint import ConstraintStats
from lacuna_model.syntax.check.document import Check, Document


class Verified:
    """Verifies texts for all gaps against the document, once each."""

    def __init__(self, document: Document | None, stats: ConstraintStats) -> None:
        self._document = document
        self._stats = stats
        self._known: dict[tuple[bytes, ...], Check] = {}

    def recall(self, texts: tuple[bytes, ...]) -> Check | None:
        """Return what an earlier check of these texts found; None if there was none."""
        return self._known.get(texts)

    def check(self, texts: tuple[bytes, ...], *, thorough: bool) -> Check:
        """Check these texts incrementally, and if ``thorough`` maybe in the whole document; remember the result."""
        self._stats.verifies += 1
        if self._document is None:
            check = Check(())
        else:
            lenient = self._document.lenient
            check = self._document.check(texts, thorough=thorough)
            if check.valid and lenient:  # from now on fewer nodes may be misplaced
                self._known.clear()
        self._known[texts] = check
        return check

    def refuse(self, texts: tuple[bytes, ...]) -> None:
        """Remember that these texts are refused, whatever an incremental check finds."""
        self._known[texts] = Check(tuple((gap, 0) for gap in range(len(texts))))

    def widen(self) -> bool:
        """Check in the whole document from now on; return False if that changes nothing."""
        return self._document is not None and self._document.widen() and self._forget()

    def displace(self) -> bool:
        """Tolerate misplaced nodes from now on; return False if that changes nothing."""
        return self._document is not None and self._document.displace() and self._forget()

    def relax(self) -> bool:
        """Tolerate the original's errors near the gaps from now on; return False if that changes nothing."""
        return self._document is not None and self._document.relax() and self._forget()

    def _forget(self) -> bool:
        self._known.clear()
        return True
