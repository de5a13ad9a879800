"""What a member owns, and what its user is told when all goes at once, or a part in between."""

from __future__ import annotations

from tarry.client.core.group.events import ASSIGNED, LOST, REVOKED
from tarry.client.core.group.ownership import Ownership

A, B = ("t", 0), ("t", 1)


def owning(*places: tuple[str, int]) -> Ownership:
    ownership = Ownership()
    ownership.target = list(places)
    ownership.begin(1)
    ownership.end()
    assert ownership.owned == list(places)
    return ownership


def test_an_assignment_of_nothing_revokes_everything_first() -> None:
    ownership = owning(A, B)

    ownership.target = []
    revoked = ownership.begin(2)

    assert revoked is not None
    assert (revoked.kind, revoked.places) == (REVOKED, [A, B])
    assert ownership.owned == [A, B], "until the user was told"
    ownership.end()
    assigned = ownership.begin(2)
    assert assigned is not None
    assert (assigned.kind, assigned.places) == (ASSIGNED, [])
    assert ownership.owned == []


def test_what_is_lost_while_another_part_is_given_up_is_told_as_lost() -> None:
    ownership = owning(A, B)
    ownership.target = [B]
    revoked = ownership.begin(2)
    assert revoked is not None
    assert revoked.places == [A]

    ownership.lose()
    ownership.end()
    lost = ownership.begin(2)

    assert lost is not None
    assert (lost.kind, lost.places) == (LOST, [B])


def test_a_revocation_that_was_put_back_is_the_next_event_again() -> None:
    ownership = owning(A, B)
    ownership.target = [B]

    first = ownership.begin(2)
    ownership.put_back()

    assert ownership.begin(2) == first
    assert ownership.owned == [A, B]
