"""What forward passes of different widths cost on this machine, learnt from the passes themselves."""

from bisect import bisect_left

# Passes of up to so many rows share one estimate; so do all beyond the last. Kernels read rows by fours or eights, so
# that one row more may cost as much as all before it.
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 48, 64, 128, 192)
# The weight of the newest pass: an estimate follows a busy machine within some ten passes.
NEWEST = 0.15
# The first proposal of a drafter is taken to cost at most this share of a pass.
CHEAP = 0.25
# Beyond the widths seen, a pass of up to so many rows is taken to cost as much as the widest of them ...
FLAT_ROWS = 4
# ... and each further row this share of the narrowest.
SHARE_A_ROW = 1 / 16
# A pass is taken to cost at most so many times as much as the narrower ones that would have its rows: one that seems
# dearer waited for other programs, and would never be tried again.
STEEPEST = 3
# A pass with mask rows is taken to cost so many times as much as one of as many tokens, until some were seen.
DEARER = 1.5
# A reading of fewer rows says little of what a row of a long one costs.
LEAST_READ = 32


class PassCosts:
    """Milliseconds of a pass by its number of rows, of a token that the model's drafter proposes, and of a reading.

    ``dearer`` is how many times as much a pass with mask rows costs: their additions are further work in each layer.
    ``rounds`` counts the choices between drafting in turn and in parallel.
    """

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        # The same by width: a wider pass costs no less, nor many times as much as the narrower ones that have its rows.
        self._points: list[tuple[int, float]] = []
        self._sharing = 1
        self.proposal_ms = 0.0
        self.dearer = DEARER
        self.rounds = 0
        self._row_ms = 0.0

    def saw_pass(self, rows: int, ms: float, sharing: int = 1, *, masked: bool = False) -> None:
        """Learn from a pass, whose rows are those of ``sharing`` requests; ``masked``: it has mask rows."""
        self._sharing = sharing
        if masked and (known := self.ms(rows)):
            self.dearer = _followed(self.dearer, max(ms / known, 1.0))
            return
        if masked:
            ms /= self.dearer
        width = WIDTHS[min(bisect_left(WIDTHS, rows), len(WIDTHS) - 1)]
        self._seen[width] = _followed(self._seen.get(width, ms), ms)
        for narrow, known in self._seen.items():
            if narrow < width and known > ms:  # it cannot cost more
                self._seen[narrow] = _followed(known, ms)
        self._points = []
        for one, cost in sorted(self._seen.items()):
            if self._points:
                narrow, least = self._points[-1]
                cost = min(max(cost, least), STEEPEST * least * -(-one // narrow))
            self._points.append((one, cost))

    def saw_proposal(self, ms: float) -> None:
        """Learn from a token that the drafter has proposed.

        The first one may be slow, and a drafter that seems slow is not asked again: so it counts as cheap at first.
        """
        self.proposal_ms = _followed(self.proposal_ms or min(ms, CHEAP * self.ms(1) or ms), ms)

    def saw_reading(self, rows: int, ms: float) -> None:
        """Learn from a reading of context, which takes many rows at a time."""
        if rows >= LEAST_READ:
            self._row_ms = _followed(self._row_ms or ms / rows, ms / rows)

    def reading_ms(self, rows: int) -> float:
        """The expected milliseconds of reading so many tokens of context."""
        return rows * (self._row_ms or self.ms(1) * SHARE_A_ROW)

    def ms(self, rows: int, *, masked: bool = False) -> float:
        """The expected milliseconds of a pass over ``rows`` rows, mask rows included; 0 before any pass was seen."""
        if not self._seen:
            return 0.0
        if masked:
            return self.ms(rows) * self.dearer
        points = self._points
        place = bisect_left(points, (rows, 0.0))
        if not place:
            return points[0][1]
        if place < len(points):
            (left, low), (right, high) = points[place - 1 : place + 1]
            return min(low + (high - low) * (rows - left) / (right - left), high)  # rounding may go over it
        last, cost = points[-1]
        return cost + max(rows - max(last, FLAT_ROWS), 0) * points[0][1] * SHARE_A_ROW

    def share_ms(self, rows: int) -> float:
        """A request's part of a pass in which each of the requests that share it has so many rows."""
        return self.ms(rows * self._sharing) / self._sharing

    def worth(self, rows: int, probability: float, *, proposed: bool = True) -> bool:
        """Whether a slot that is right with ``probability`` pays for its row, beside ``rows`` others.

        A right slot saves its request the pass that would have found its token. A token that the drafter has not
        ``proposed`` yet costs that, too.
        Where several requests share the passes, each of them waits for the row, and the pass is one for all of them.
        """
        if not self._seen:
            return True
        saved = probability * self.share_ms(1)
        return saved >= self.ms(rows + 1) - self.ms(rows) + (0.0 if proposed else self.proposal_ms)


def _followed(known: float, ms: float) -> float:
    """An estimate after one more measurement; one that waited for other programs counts as twice the estimate.

    An estimate of more than twice the measurement is from such a pass, or from one that compiled a kernel.
    """
    known = min(known, 2 * ms)
    return known + NEWEST * (min(ms, 2 * known) - known)
