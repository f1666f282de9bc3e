"""Reads the suffix of a gap as the LR parser does and keeps the stacks from which the suffix can be parsed.

A sound text gives the stacks after each terminal of the suffix. Another text is readable once it has one of these
stacks at the same terminal.
"""

from collections.abc import Sequence

from lacuna_model.syntax.lr.parse_table import END, ParseTable, Stack

# How many terminals of the suffix are read at most; a stack that can read as many is accepted.
REACH = 250
AHEAD = 16  # how many are read at once to tell which of several sound stacks is right


class SuffixStacks:
    """The terminals of a suffix, and the stacks of a sound text after each of them; results are kept.

    ``goal`` holds the sound stacks before the first terminal.
    """

    def __init__(self, table: ParseTable, terminals: Sequence[int], goal: frozenset[Stack]) -> None:
        self._table = table
        self.terminals = terminals
        self._goals = [goal]
        self._open = {table.brackets(stack) for stack in goal}  # the suffix closes these
        self._ends: dict[tuple[int, int], int] = {}
        self._accepted: dict[Stack, bool] = {}
        self.read = 0  # how many terminals, in all

    def begins(self, state: int) -> bool:
        """Whether the first terminal may follow a stack with this state on top."""
        return not self.terminals or self._table.knows(state, self.terminals[0])

    def accepts(self, stack: Stack) -> bool:
        """Whether the suffix can be read after a stack, up to where its stacks are those of the sound text."""
        found = self._accepted.get(stack)
        if found is None:
            fits = not self._open or self._table.brackets(stack) in self._open
            found = self._accepted[stack] = fits and self._reads(stack)
        return found

    def _reads(self, stack: Stack) -> bool:
        stacks, place = [stack], 0
        while place < len(self.terminals):
            goal = self._goal(place)
            if not goal.isdisjoint(stacks):
                return True
            if len(stacks) == len(goal) == 1:
                place, stacks[0] = self._ahead(place, stacks[0], *goal)
                if place == len(self.terminals):
                    break
            stacks = self._table.read(stacks, self.terminals[place])
            place, self.read = place + 1, self.read + 1
            if not stacks:
                return False
        if len(self.terminals) < REACH:
            return any(self._table.shift(one, END) for one in stacks)
        return True

    def _ahead(self, place: int, stack: Stack, goal: Stack) -> tuple[int, Stack]:
        """The place up to which a stack acts like the sound one, since their tops are alike, and the stack there."""
        below = len(goal) - alike(stack, goal)
        if below == len(goal):
            return place, stack
        end = self._ends.get((place, below))
        if end is None:
            end = self._ends[place, below] = self._end(place, goal[: below + 1])
        if end == place:
            return place, stack
        (goal_there,) = self._goal(end)
        return end, stack[: len(stack) - (len(goal) - below)] + goal_there[below:]

    def _end(self, place: int, bottom: Stack) -> int:
        """The last place, from a place on, up to which the sound stack keeps its bottom."""
        while place < len(self.terminals):
            after = self._goal(place + 1)
            if len(after) != 1 or (*after,)[0][: len(bottom)] != bottom:
                break
            place += 1
        return place

    def _goal(self, place: int) -> frozenset[Stack]:
        while len(self._goals) <= place:
            begin = len(self._goals) - 1
            self._goals[begin:] = sound_stacks(self._table, self._goals[begin], self.terminals[begin : begin + AHEAD])
        return self._goals[place]


def sound_stacks(table: ParseTable, before: frozenset[Stack], terminals: Sequence[int]) -> list[frozenset[Stack]]:
    """Return the stacks before each of some terminals and after the last, without those that lead nowhere."""
    found = [before]
    for terminal in terminals:
        found.append(frozenset(table.read(found[-1], terminal)))
    for place in range(len(terminals) - 1, -1, -1):
        if len(found[place]) > 1 and (after := found[place + 1]):
            ways = (one for one in found[place] if not after.isdisjoint(table.read([one], terminals[place])))
            found[place] = frozenset(ways) or found[place]
    return found


def alike(one: Stack, other: Stack) -> int:
    """How many states two stacks have in common at their tops."""
    found = 0
    for mine, yours in zip(reversed(one), reversed(other), strict=False):
        if mine != yours:
            break
        found += 1
    return found
