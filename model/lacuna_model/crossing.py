"""Tokens across the end of a gap.

Natural text has ``))`` as one token, and behind ``f(g(x`` the base says so. Where the second bracket stands behind the
gap already, that means: write ``)``, and the fill is complete. So what the base says of a token that would run over the
end of the gap is said of its beginning, and of an end behind that. Without this hardly a fill came out right whose last
token would be one with what stands behind the gap, which is every fourth inside of brackets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lacuna_model.prefixes import PrefixTable
from lacuna_model.tokenizer import Tokenizer

# What is left to the tokens themselves: a fill may yet end in such brackets of its own.
LEFT = 1e-3


@dataclass(slots=True)
class Crossing:
    """The end of one gap: ``tokens`` [M] run over it in natural text, and ``beginnings`` [M] is what they put in front.

    ``shares`` has for places of the gap how much of a beginning's probability came of tokens across the end.
    """

    tokens: Tensor
    beginnings: Tensor
    shares: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, behind: bytes, prefixes: PrefixTable) -> "Crossing":
        """The end of a gap that ``behind`` stands behind."""
        return cls(*prefixes.crossing(behind))

    def credit(self, said: Tensor, place: int, healed: int | None = None) -> Tensor:
        """What is said of the next token [V], as log-probabilities, with the credit for tokens across the end.

        A fill of nothing but the ``healed`` token, which stands in front of the gap already, gets none: who asks in
        ``f()`` wants an argument.
        """
        if not len(self.tokens):
            return said
        own = said.softmax(-1)
        moved = torch.zeros_like(own).index_add(0, self.beginnings, own[self.tokens])
        own[self.tokens] *= LEFT
        if healed is not None:
            moved[healed] = 0
        self.shares[place] = (moved / (own + moved).clamp_min(torch.finfo(own.dtype).tiny))[self.beginnings]
        return (own + moved).clamp_min(torch.finfo(own.dtype).tiny).log()

    def ends_behind(self, token: int, place: int, going_on: Tensor) -> Tensor:
        """The log-probability that the text behind the gap goes on behind ``token``, which is at ``place``.

        ``going_on`` is that of its first token by itself.
        """
        if place not in self.shares:
            return going_on
        share = self.shares[place][self.beginnings == token]
        if not len(share):
            return going_on
        return torch.logaddexp(share[0].log(), torch.log1p(-share[0].clamp_max(1 - 1e-6)) + going_on)


def joined(fill: Sequence[int], behind: Sequence[int], tokenizer: Tokenizer, healed: bytes = b"") -> list[int]:
    """The tokens that natural text has for a fill and what stands behind its gap, which is text or nothing at all.

    A fill of nothing but the ``healed`` text stays apart: it would have the credit of ``()``.
    """
    own, following = tokenizer.decode_bytes(fill), tokenizer.decode_bytes(behind)
    try:
        text = (own + following).decode()
    except UnicodeDecodeError:  # the text behind is cut within a character
        following = b""
    return tokenizer.encode(text) if following and own != healed else [*fill, *behind]
