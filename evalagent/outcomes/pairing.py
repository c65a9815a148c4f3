"""Who gets which: a largest matching, so that a loose expectation never takes the only row of a strict one."""

from collections import deque
from collections.abc import Mapping, Sequence


def pair(choices: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Asker -> choice, each choice given once, as many askers served as can be (augmenting paths, breadth first).

    Askers are served in the order given; whoever is served once stays served.
    """
    holder: dict[int, int] = {}  # choice -> asker
    for asker in choices:
        came_from: dict[int, int] = {}  # choice -> the asker that would take it
        queue = deque([asker])
        free = None
        while queue and free is None:
            now = queue.popleft()
            for choice in choices[now]:
                if choice in came_from:
                    continue
                came_from[choice] = now
                if choice not in holder:
                    free = choice
                    break
                queue.append(holder[choice])
        given = {owner: choice for choice, owner in holder.items()}
        while free is not None:
            taker = came_from[free]
            before = given.get(taker)
            holder[free] = taker
            free = before if taker != asker else None
    return {owner: choice for choice, owner in sorted(holder.items(), key=lambda item: item[1])}
