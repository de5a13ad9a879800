"""Limits, each with its reason.  What a user may set is a setting; its default may stand here."""

from __future__ import annotations

from typing import Final

# A frame larger than this is an attack or a bug: Kafka's default of `socket.request.max.bytes`.
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024

# Array elements in one frame, all arrays together: two bytes on the wire can become an object of a
# hundred.  Metadata of 200,000 partitions with three replicas has 1.4 million.
FRAME_ELEMENTS_MAX: Final = 2_000_000

# A frame that is not whole so long after its first byte comes from a peer that trickles.
FRAME_AGE_MS_MAX: Final = 60_000

# Answers that a connection has not taken yet; past it the broker stops reading from that peer.
UNSENT_BYTES_MAX: Final = 16 * 1024 * 1024

# Answers made for one connection in one turn; the others come first, then it goes on.  So much
# metadata takes 9 ms to make.
ANSWER_BYTES_PER_TURN_MAX: Final = 128 * 1024

# Requests of one connection that wait for their answers; past it the broker stops reading.
# Java sends 5 at a time, librdkafka up to 1,000,000 by setting but 1,000 in practice.
REQUESTS_IN_FLIGHT_MAX: Final = 1_000

# Watchers completed in one turn, so that one produce with 10,000 waiting readers stalls nobody:
# to read, answer and send takes 13 to 25 µs each.
COMPLETIONS_PER_TURN_MAX: Final = 400

# Timer moves (falls to a lower level counted) in one turn; an expiry costs as much as a completion.
TIMER_MOVES_PER_TURN_MAX: Final = 400

# Pieces of an unfinished frame before they are joined: a peer that sends two bytes at a time would
# cost fifty for them.
FRAME_PIECES_MAX: Final = 256

# The poll sleeps at most so long, so that a stop or a clock jump is seen.
POLL_MS_MAX: Final = 500

# A turn that begins so much later than planned means that the process was stopped.
STALL_MS: Final = 1_000

# Kafka's rule for topic names: a file name must hold name, partition and suffix.
TOPIC_NAME_CHARACTERS_MAX: Final = 249

# Records that an answer names as the reasons why their batch was refused; clients show a few.
RECORD_ERRORS_MAX: Final = 100

# What a compressed batch may unfold to when a setting asks for its records: sixteen times the
# default of `max.message.bytes`.  Opening so much takes some 30 ms, so few are opened in a turn.
OPENED_BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
OPENED_BATCHES_PER_TURN_MAX: Final = 2

# Batches of one produce that were made anew by compression.type and wait to be appended together:
# a frame of compressed nothing could become a hundred times its size.
RECOMPRESSED_REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024

# Idempotent producers known in a partition; past it those not active for longest are forgotten.
# Guards against clients that take a new producer id for every request: 4 MB and, for the snapshot
# that a recovery point writes in a turn, 2.5 ms.
PRODUCER_IDS_PER_PARTITION_MAX: Final = 4_000

# Partitions that one request may create: each is a directory with files to make in one turn.
# Kafka's controller has the same bound.
PARTITIONS_PER_REQUEST_MAX: Final = 10_000

# Resources whose settings one request may change: each is decided on in the same turn.
RESOURCES_PER_REQUEST_MAX: Final = 10_000

# Producer ids reserved at once in the metadata: what a crash can waste.  Kafka's block size.
PRODUCER_IDS_PER_RESERVATION: Final = 1_000
