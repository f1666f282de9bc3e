"""Token healing: which token a fill begins with where it says anew what stands in front of its gap."""

from collections.abc import Callable, Sequence

from torch import Tensor

from lacuna_model.prefixes import PrefixTable


def lead(
    prefix: bytes, said: Tensor, prefixes: PrefixTable, probe: Callable[[Sequence[int]], Sequence[Tensor]]
) -> int | None:
    """The token that healed text begins with, where the base finds that likelier than one token with all of it.

    ``said`` [V] is its reading of the first slot, and ``probe`` tells that of the second behind each of some tokens.
    Where the cursor is in ``endif``, say, ``ending`` is a token, but what is to be written is ``end`` + ``if``. Nobody
    is asked where no beginning alone is as likely as the whole.
    """
    said = said.log_softmax(-1)
    whole = said[prefixes.starting_with(prefix)].logsumexp(0)
    leading = [(token, rest) for token, rest in prefixes.leading(prefix) if said[token] > whole]
    if not leading:
        return None
    odds = [
        float(said[token] + going_on.log_softmax(-1)[prefixes.starting_with(rest)].logsumexp(0) - whole)
        for (token, rest), going_on in zip(leading, probe([token for token, _ in leading]), strict=True)
    ]
    return leading[odds.index(max(odds))][0] if max(odds) > 0 else None
