"""Views that other brokers have of this one, which asks for them while its own lease is over.

A broker that alone has lost etcd learns of no change: its coordinators must not act, and it names
leaders that lead no more.  Its peers know better, and it can reach them.  Once a peer has said for
a while that this broker does not live, the broker sends its clients away: it closes their
connections, and closes new ones at once, until it lives and serves again.  To clients it looks
dead, as it is to the other brokers, and they go on with those.  If etcd is away for all brokers,
every peer still counts this one as alive.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.membership.membership import ClusterMembership
from tarry.broker.peers.peers import Peers
from tarry.cluster.state.state import ClusterState
from tarry.link.errors import ClientError
from tarry.link.exchange import Exchange
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    decode_describe_cluster_response,
)
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.cluster")

ASK_MS: Final = 500
ANSWER_MS_MAX: Final = 2_000
# Bound on an answer, which names every broker of the cluster.
ANSWER_BYTES_MAX: Final = 1 << 20
# How long a peer has to say that this broker does not live.  After etcd was frozen, lives that have
# ended together begin again one after the other.
CERTAIN_MS: Final = 500


class WhoLives(Exchange[DescribeClusterResponse]):
    """Question to a peer about which brokers live."""

    def __init__(
        self,
        on_response: Callable[[DescribeClusterResponse], None],
        on_failure: Callable[[], None],
    ) -> None:
        super().__init__(api_keys.DESCRIBE_CLUSTER, decode_describe_cluster_response, ANSWER_MS_MAX)
        self._on_response = on_response
        self._on_failure = on_failure

    def build(self, version: int) -> DescribeClusterRequest:
        return DescribeClusterRequest()

    def on_response(self, response: DescribeClusterResponse, now_ms: int) -> None:
        self._on_response(response)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._on_failure()


class OtherViews:
    """Views of the peers that this broker knows; `send_away` closes the connections of clients."""

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        membership: ClusterMembership,
        peers: Peers,
        turn: Turn,
        timer: TimingWheel,
        *,
        send_away: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._state = state
        self._membership = membership
        self._asker = peers.asker(
            "views",
            timeout_ms=ANSWER_MS_MAX,
            backoff_ms=ASK_MS,
            answer_bytes_max=ANSWER_BYTES_MAX,
        )
        self._turn = turn
        self._alarm = Alarm(timer, turn, self._look)
        self._send_away = send_away
        self._asked: dict[int, None] = {}
        # Time since which each peer says that this broker does not live, in attended ms.
        self._since_ms: dict[int, int] = {}
        # True while clients are sent away, until this broker serves in a life of its own.
        self._are_sent_away = False
        self._alarm.arm(ASK_MS)

    def must_send_away(self) -> bool:
        """Return whether this broker must serve no client."""
        if self._are_sent_away and self._membership.is_serving and self._membership.is_alive:
            self._are_sent_away = False
            logger.info("broker %d serves its clients again", self._settings.node_id)
        return self._are_sent_away

    def _look(self) -> None:
        """Ask each peer if the own lease is over."""
        self._alarm.arm(ASK_MS)
        if self.must_send_away():
            return
        if self._membership.is_alive or not self._membership.has_lived:
            self._forget()
            return
        for broker_id in sorted(self._state.brokers):
            if broker_id != self._settings.node_id and broker_id not in self._asked:
                self._ask(broker_id)

    def _ask(self, broker_id: int) -> None:
        self._asked[broker_id] = None
        question = WhoLives(partial(self._hear, broker_id), partial(self._hear_nothing, broker_id))
        self._asker.ask(broker_id, question)

    def _hear(self, broker_id: int, response: DescribeClusterResponse) -> None:
        if response.error_code or response.cluster_id != self._state.cluster_id:
            # Another broker may have the peer's address by now.
            self._hear_nothing(broker_id)
            return
        self._asked.pop(broker_id, None)
        living = [each.broker_id for each in response.brokers]
        if self._settings.node_id in living or self._membership.is_alive:
            self._since_ms.pop(broker_id, None)
            return
        now_ms = self._turn.now_ms
        if now_ms - self._since_ms.setdefault(broker_id, now_ms) < CERTAIN_MS:
            return
        logger.warning(
            "broker %d does not hear of etcd, and broker %d counts it as dead: its clients are "
            "sent away until it lives again",
            self._settings.node_id,
            broker_id,
        )
        self._are_sent_away = True
        self._forget()
        self._send_away()

    def _hear_nothing(self, broker_id: int) -> None:
        self._asked.pop(broker_id, None)
        self._since_ms.pop(broker_id, None)

    def _forget(self) -> None:
        """Close the connections to peers, and forget their answers."""
        self._since_ms.clear()
        self._asker.hang_up_all("it is not asked any more")
        self._asked.clear()
