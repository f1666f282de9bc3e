"""One gap's slots as the witness search sees them: the fixed tokens, and the model's best tokens for the rest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lacuna_model.core.constraint import Commit, GapView, Remask, fill_tokens


@dataclass(frozen=True, slots=True)
class Fill:
    """A complete fill: its tokens (no end-of-gap), its text, and how many tokens precede the completion ``closing``."""

    tokens: tuple[int, ...]
    text: bytes
    prefix: int
    closing: bytes = b""


@dataclass(frozen=True, slots=True)
class Draft:
    """A gap's tokens up to ``kept``, the model's draft after it, and the room there is.

    ``tokens`` are the done tokens, then per slot the fixed token or the model's best one; they end before the first
    end-of-gap. ``complete`` tells whether there was one, or whether nothing may follow. ``closed`` tells whether
    nothing may follow the fixed part. ``kept`` is the length up to and including the last fixed token. ``capacity`` is
    the most tokens that the fill may have; a fixed end-of-gap bounds it. ``doubt`` is the mean of -logp over the free
    slots.
    """

    tokens: tuple[int, ...]
    complete: bool
    closed: bool
    kept: int
    capacity: int
    doubt: float


def lay_out(view: GapView, overlay: Mapping[int, int], eog_id: int) -> Draft | None:
    """Return the draft of a gap with ``overlay`` (slot to token) over its slots; None where a hole has no candidate."""
    fixed = [overlay.get(slot, token) for slot, token in enumerate(view.slots)]
    done = len(view.done)
    end = next((slot for slot, token in enumerate(fixed) if token == eog_id), None)
    span = fixed if end is None else fixed[:end]
    last = max((slot for slot, token in enumerate(span) if token is not None), default=-1)
    tokens = list(view.done)
    free, doubt = 0, 0.0
    complete = view.closed
    for slot, token in enumerate(span):
        if token is None:
            best = best_token(view, slot, eog_id, may_end=slot > last) if not view.closed else None
            if best is None and slot < last:
                return None
            if best is None or best[0] == eog_id:
                complete = complete or best is not None
                break
            token, logp = best
            free += 1
            doubt -= logp
        tokens.append(token)
    length = done + len(span)
    ran_full = len(tokens) == length and (end is not None or view.budget == 0)
    return Draft(
        tokens=tuple(tokens),
        complete=complete or ran_full,
        closed=view.closed or (end is not None and last + 1 == len(span)),
        kept=len(tokens) if view.closed else done + last + 1,
        capacity=length if end is not None else length + view.budget,
        doubt=doubt / max(free, 1),
    )


def best_token(view: GapView, slot: int, eog_id: int, *, may_end: bool) -> tuple[int, float] | None:
    """Return the model's best token for a slot and its log-probability; end-of-gap only where the fill may end."""
    for rank in range(view.ids.shape[1] if slot < len(view.ids) else 0):  # nearly always the first
        if may_end or view.ids[slot, rank] != eog_id:
            return int(view.ids[slot, rank]), float(view.logp[slot, rank])
    return None


def fixed_in_block(view: GapView, eog_id: int) -> dict[int, int]:
    """Return the committed tokens of the current block by slot, up to the first end-of-gap."""
    fixed: dict[int, int] = {}
    for slot, token in enumerate(view.slots):
        if token is not None:
            fixed[slot] = token
        if token == eog_id:
            break
    return fixed


def holds(tokens: Sequence[int], view: GapView, eog_id: int) -> bool:
    """Whether a fill has all committed tokens of a gap in their places."""
    if view.closed:
        return list(tokens) == fill_tokens(view, eog_id)
    done = len(view.done)
    return tuple(tokens[:done]) == view.done and all(
        len(tokens) <= done + slot if token == eog_id else tuple(tokens[done + slot : done + slot + 1]) == (token,)
        for slot, token in fixed_in_block(view, eog_id).items()
    )


def agrees(tokens: Sequence[int], commit: Commit, view: GapView, eog_id: int) -> bool:
    """Whether a fill has all committed tokens of a gap in their places, and would with this commit too."""
    return holds(tokens, changed(view, [commit]), eog_id)


def strayed(gaps: Sequence[GapView], witness: Sequence[Fill] | None, eog_id: int) -> set[int]:
    """Return the gaps whose committed tokens the witness does not hold; all gaps without a witness.

    The witness need not hold tentative tokens as long as their gap is open.
    """
    if witness is None:
        return set(range(len(gaps)))
    settled = (gap for gap, view in enumerate(gaps) if view.closed or not view.tentative)
    return {gap for gap in settled if not holds(witness[gap].tokens, gaps[gap], eog_id)}


def changed(view: GapView, changes: Iterable[Commit | Remask]) -> GapView:
    """Return a gap after some commits and remasks; unlike a canvas it keeps slots after an end-of-gap."""
    slots, tentative = list(view.slots), view.tentative
    for one in changes:
        if isinstance(one, Commit):
            slots[one.slot], tentative = one.token, one.tentative
        else:
            end = slots.index(None) if None in slots else len(slots)
            slots[one.slot : end] = [None] * (end - one.slot)
            tentative = False
    return replace(view, slots=tuple(slots), tentative=tentative)


def overlaid(tokens: tuple[int, ...], view: GapView, overlay: Mapping[int, int], eog: int) -> tuple[int, ...]:
    """Return the witness's tokens with the proposed ones in their places; a proposed end-of-gap ends them."""
    changed = list(tokens)
    for slot, token in sorted(overlay.items()):
        position = len(view.done) + slot
        if token == eog:
            return tuple(changed[:position])
        changed[position : position + 1] = [token]
    return tuple(changed)


def with_view(gaps: Sequence[GapView], gap: int, view: GapView) -> list[GapView]:
    """The gaps with one of them replaced by a view."""
    return [*gaps[:gap], view, *gaps[gap + 1 :]]


def lacking(fill: Fill, view: GapView, gap: int, eog_id: int) -> list[Commit]:
    """Return the tokens of a fill for the open slots of a gap's block, up to the end of the fill, as commits."""
    pairs = zip(view.slots, [*fill.tokens, eog_id][len(view.done) :], strict=False)
    return [Commit(gap, slot, token) for slot, (own, token) in enumerate(pairs) if own is None]
