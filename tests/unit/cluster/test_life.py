"""The life of a broker: its lease, its epoch, and what ends it."""

from __future__ import annotations

import pytest
from tests.support.cluster.life_scene import RENEW_MS, TTL_MS, LifeScene

from tarry.base.etcd import LeaseRenewed
from tarry.cluster.lives.life import NO_EPOCH
from tarry.cluster.rows.rows import BrokerRow, LifeRow, decode_row
from tarry.cluster.state.state import LEAVING, SERVING


@pytest.fixture
def scene() -> LifeScene:
    return LifeScene()


def phase_of(scene: LifeScene, broker_id: int) -> str:
    (row,) = scene.etcd.rows(b"/test/lives/%d" % broker_id)
    life = decode_row("lives", row.key, row.value)
    assert isinstance(life, LifeRow)
    return life.phase


def test_a_life_begins_with_a_key_whose_creation_is_the_epoch(scene: LifeScene) -> None:
    broker = scene.start(1)

    scene.run(lambda: broker.life.is_alive)

    (row,) = scene.etcd.rows(b"/test/lives/1")
    assert broker.life.broker_epoch == row.create_revision
    assert broker.epochs == [row.create_revision]
    assert broker.life.obstacle == ""
    (registered,) = scene.etcd.rows(b"/test/brokers/1")
    found = decode_row("brokers", registered.key, registered.value)
    assert isinstance(found, BrokerRow)
    assert (found.directory_id, found.release) == ("disk-1", "0.1.0")


def test_each_life_writes_the_registration(scene: LifeScene) -> None:
    """So that no unregistration that was decided before it is done after it."""
    revisions = []
    for _ in range(2):
        broker = scene.start(1)
        scene.run(lambda broker=broker: broker.life.is_alive)
        (registered,) = scene.etcd.rows(b"/test/brokers/1")
        revisions.append((registered.mod_revision, broker.life.broker_epoch))
        broker.kill()
        scene.pass_ms(3 * TTL_MS)

    assert [mod for mod, _ in revisions] == [epoch for _, epoch in revisions]


def test_a_life_goes_on_as_long_as_it_is_renewed(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)

    for _ in range(20):
        scene.pass_ms(TTL_MS // 2)
        assert broker.life.is_alive

    assert len(broker.epochs) == 1
    assert scene.stored_lives() == [b"/test/lives/1"]


def test_a_phase_is_seen_and_keeps_the_epoch(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    epoch = broker.life.broker_epoch

    for phase in (SERVING, LEAVING):
        broker.life.set_phase(phase)
        scene.pass_ms(2_000)

        assert phase_of(scene, 1) == phase
        assert broker.life.broker_epoch == epoch
    scene.pass_ms(3 * TTL_MS)
    assert broker.life.is_alive


def test_a_killed_broker_is_dead_after_its_time_to_live(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    broker.kill()

    scene.pass_ms(TTL_MS - 1_600)
    before = scene.stored_lives()
    scene.pass_ms(3_000)

    assert before == [b"/test/lives/1"]
    assert scene.stored_lives() == []


def test_a_broker_that_was_asleep_counts_itself_dead_before_others_may(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    broker.is_asleep = True
    while scene.stored_lives():
        broker.turn.now_ms = scene.etcd.now_ms
        if not broker.life.is_alive:
            break
        scene.step()

    assert scene.stored_lives() == [b"/test/lives/1"]


def test_a_renewal_counts_from_its_asking_though_its_answer_was_read_late(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    broker.door.on_renewed = broker.fall_asleep
    scene.run(lambda: broker.is_asleep)
    scene.run(lambda: not scene.stored_lives())
    assert any(isinstance(event.answer, LeaseRenewed) for event in broker.events)

    broker.is_asleep = False
    broker.step()

    assert not broker.life.is_alive


def test_a_broker_whose_lease_is_over_lives_again_in_a_new_epoch(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    broker.is_asleep = True
    scene.pass_ms(TTL_MS + 2_000)
    broker.is_asleep = False

    scene.run(lambda: len(broker.epochs) == 3)

    first, ended, second = broker.epochs
    assert ended == NO_EPOCH
    assert second > first
    scene.pass_ms(TTL_MS)
    assert broker.life.is_alive


def test_a_quick_restart_does_not_wait_for_the_old_lease(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    broker.kill()
    killed_ms = scene.etcd.now_ms

    again = scene.start(1)
    scene.run(lambda: again.life.is_alive)

    assert scene.etcd.now_ms - killed_ms < 1_500
    assert again.life.broker_epoch > broker.life.broker_epoch


def test_another_disk_under_the_same_id_waits_and_says_why(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    other = scene.start(1, "disk-2")

    scene.pass_ms(3 * TTL_MS)

    assert broker.life.is_alive
    assert len(broker.epochs) == 1
    assert not other.life.is_alive
    assert "lives in the cluster already, with another log directory" in other.life.obstacle
    broker.kill()
    scene.run(lambda: other.life.is_alive)


def test_two_brokers_live_beside_each_other(scene: LifeScene) -> None:
    one, two = scene.start(1), scene.start(2, "disk-2")

    scene.run(lambda: one.life.is_alive and two.life.is_alive)
    scene.pass_ms(3 * TTL_MS)

    assert one.life.is_alive
    assert two.life.is_alive
    assert one.life.broker_epoch != two.life.broker_epoch


def test_a_life_ends_by_itself_while_etcd_is_away_and_begins_anew(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    broker.door.go_away()

    scene.run(lambda: not broker.life.is_alive)
    alive_in_etcd = scene.stored_lives()
    scene.pass_ms(2 * TTL_MS)
    broker.door.come_back()
    scene.run(lambda: broker.life.is_alive)

    assert alive_in_etcd == [b"/test/lives/1"]
    assert broker.epochs[1] == NO_EPOCH
    assert broker.epochs[2] > broker.epochs[0]


def test_a_short_absence_of_etcd_costs_no_life(scene: LifeScene) -> None:
    broker = scene.start(1)
    scene.run(lambda: broker.life.is_alive)
    for _ in range(5):
        broker.door.go_away()
        scene.pass_ms(2_000)
        broker.door.come_back()
        scene.pass_ms(2_000)

        assert broker.life.is_alive
    assert len(broker.epochs) == 1


@pytest.mark.parametrize("seed", range(30))
def test_two_processes_never_live_at_once_under_one_id(seed: int) -> None:
    """Answers are lost, links cut, processes sleep: of one id, one alone may act."""
    scene = LifeScene(seed)
    chance = scene.random
    directories = ["disk-1", "disk-2"]
    brokers = [scene.start(1, directory) for directory in directories]
    for _ in range(150):
        broker = brokers[chance.randrange(2)]
        match chance.randrange(6):
            case 0:
                broker.door.lose_answers = chance.randrange(3)
            case 1:
                broker.door.lose_requests = chance.randrange(3)
            case 2:
                broker.door.cut()
            case 3:
                broker.is_asleep = not broker.is_asleep
            case 4:
                broker.door.delay_ms_max = chance.randrange(3_000)
            case _:
                if broker.door.is_away:
                    broker.door.come_back()
                else:
                    broker.door.go_away()
        for _ in range(chance.randrange(200)):
            scene.step()
            awake = [each for each in brokers if not each.is_asleep]
            assert sum(each.life.is_alive for each in awake) <= 1

    for broker in brokers:
        broker.is_asleep = False
        broker.door.come_back()
        broker.door.delay_ms_max = 20
        broker.door.lose_answers = broker.door.lose_requests = 0
    scene.run(lambda: any(each.life.is_alive for each in brokers))


@pytest.mark.parametrize("seed", range(1, 9))
def test_an_etcd_that_answers_later_than_leases_are_renewed_lets_a_life_begin(seed: int) -> None:
    """What a call has done counts as long as the lease does: given up sooner and asked for again
    and again, no life began for minutes beside an etcd that was starved of its processor.
    """
    scene = LifeScene(seed)
    broker = scene.start(1)
    scene.run(lambda: broker.store.is_ready)
    broker.door.delay_ms_max = 3 * RENEW_MS // 2

    scene.pass_ms(30_000)

    assert any(epoch >= 0 for epoch in broker.epochs)
