"""Limits, each with its reason.  What a user may set is a setting; its default may stand here."""

from __future__ import annotations

from typing import Final

# A frame larger than this is an attack or a bug: Kafka's default of `socket.request.max.bytes`.
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024

# Array elements in one frame, all arrays together: two bytes on the wire can become an object of a
# hundred.  Metadata of 200,000 partitions with three replicas has 1.4 million.
FRAME_ELEMENTS_MAX: Final = 2_000_000

# Array elements in one request: an element becomes an object, and all of them are decoded in one
# turn, which takes 30 ms.  A commit of 10,000 partitions has 10,001.
REQUEST_ELEMENTS_MAX: Final = 100_000

# Arrays in one request, those in arrays included: an empty one becomes a list all the same.
REQUEST_ARRAYS_MAX: Final = 50_010

# Partitions that a follower names in one fetch, and the most that it forgets in one; also those
# whose log starts it asks for at once.  Its leader takes and answers each in 10 µs, in one turn.
PARTITIONS_PER_FETCH_MAX: Final = 1_000

# Tagged fields in one request beside those of its elements: known versions have three at most,
# newer ones some more.
REQUEST_TAGGED_FIELDS_MAX: Final = 1_000

# Tagged fields that each array element may have besides: a partition in a follower's fetch has its
# directory, and in a fetch of Kafka's followers its high watermark.
TAGGED_FIELDS_PER_ELEMENT: Final = 2

# Array elements decoded in one turn; past it large requests of others wait for the next.
ELEMENTS_PER_TURN_MAX: Final = 20_000

# A request with fewer bytes than this is small.  It is handled in the turn in which it arrives,
# until the small requests of all connections have this many elements in the turn: each element may
# be a partition to append to or to commit, which takes 5 µs.
LARGE_REQUEST_BYTES: Final = 16 * 1024
SMALL_ELEMENTS_PER_TURN_MAX: Final = 5_000

# Logs whose records stand in one answer to a fetch of thousands of partitions, and that a follower
# gets in one answer: to look one up, to read it and to send it takes 15 µs.
FETCHED_LOGS_MAX: Final = 1_000

# Logs that one round of flushes covers, the others have the next: to begin and to end a round takes
# 10 µs for each, with the answers to those who wait for it.
FLUSHED_LOGS_PER_ROUND_MAX: Final = 1_000

# Waiting large requests that one turn looks at, one for each connection.
LARGE_REQUESTS_LOOKED_AT: Final = 50

# An answer that is made element by element.  Metadata of 200,000 partitions with three replicas
# has 10 MB; past it the request is refused, or its connection closed.
LONG_ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024

# All answers that are being made at once; past it they are made one after the other, and no
# further large request is decoded.
LONG_ANSWERS_BYTES_MAX: Final = 16 * 1024 * 1024

# Work on long answers in one turn, in units of an element or 64 bytes, which take 5 to 10 µs.
LONG_ANSWER_UNITS_PER_TURN: Final = 500
LONG_ANSWER_BYTES_PER_UNIT: Final = 64

# Units that an answer has at once, in the turn of its request, so that short ones do not wait;
# all those of a turn together have a bound too.
LONG_ANSWER_FIRST_UNITS: Final = 100
LONG_ANSWER_FIRST_UNITS_PER_TURN: Final = 1_000

# A frame that is not whole so long after its first byte comes from a peer that trickles.
FRAME_AGE_MS_MAX: Final = 60_000

# Bytes of requests that have arrived and are not handled, of all connections together, where
# `queued.max.request.bytes` names none: five of the largest frames.
QUEUED_BYTES_MAX: Final = 512 * 1024 * 1024

# A connection that waits for room among them is read for so long before the next one's turn: a
# frame of 1 MB arrives in a tenth of it.
GRANT_MS: Final = 100

# Connections that are read again in one turn once there is room: 2 ms of calls to the kernel.
GRANTS_PER_TURN_MAX: Final = 400

# The log says at most once in so long that requests find no room.
PRESSURE_LINE_MS: Final = 60_000

# Answers that a connection has not taken yet; past it the broker stops reading from that peer.
UNSENT_BYTES_MAX: Final = 16 * 1024 * 1024

# Answers made for one connection in one turn; the others come first, then it goes on.  So much
# metadata takes 9 ms to make.
ANSWER_BYTES_PER_TURN_MAX: Final = 128 * 1024

# Requests of one connection that wait for their answers; past it the broker stops reading.
# Java sends 5 at a time, librdkafka up to 1,000,000 by setting but 1,000 in practice.
REQUESTS_IN_FLIGHT_MAX: Final = 1_000

# Questions of one part of a broker to one other broker that are not answered; more fail at once.  A
# part puts what it has to ask in one turn into one question: with a hundred it waits for nothing.
QUESTIONS_UNDER_WAY_MAX: Final = 100

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

# Batches of one produce that were made anew by compression.type, or opened for their due times, and
# wait to be appended together: a frame of compressed nothing could become a hundred times its size.
RECOMPRESSED_REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
# Bytes of such batches that all produces in shares hold together while they wait for flushes.  At
# this size no further produce in shares is begun, so all of them hold at most this and one more.
RECOMPRESSED_HELD_BYTES_MAX: Final = 64 * 1024 * 1024

# Time for which one of them holds its batches while logs do not move, and others may wait for the
# room.  It appends the rest then, however many logs are to be flushed.
RECOMPRESSED_HELD_MS_MAX: Final = 5_000

# Idempotent producers known in a partition; past it those are forgotten of which one connection
# has most, then those that wrote once, then those not active for longest.
# Guards against clients that take a new producer id for every request: 4 MB and, for the snapshot
# that a recovery point writes in a turn, 2.5 ms.
PRODUCER_IDS_PER_PARTITION_MAX: Final = 4_000

# Metadata of one group: what members say for their protocols, their assignments, texts of offsets.
# 2,000 members that read 200 topics each have 12 MB; the record of a generation holds 1 MB of it.
GROUP_METADATA_BYTES_MAX: Final = 16 * 1024 * 1024

# Partitions that one request may create: each is a directory with files to make in one turn.
# Kafka's controller has the same bound.
PARTITIONS_PER_REQUEST_MAX: Final = 10_000

# Topics that one host makes in a minute by asking for their metadata: each is a directory with
# files, kept until somebody deletes it.  CreateTopics is for more.
TOPICS_AUTO_CREATED_PER_MINUTE_MAX: Final = 1_000

# Resources whose settings one request may change: each is decided on in the same turn.
RESOURCES_PER_REQUEST_MAX: Final = 10_000

# Users whose credentials one request may name: each has a sentence in the answer.
USERS_PER_REQUEST_MAX: Final = 10_000

# Protocols of a member: its client offers one for each assignor, of which there are five.  Those of
# all members are compared when a join phase ends.
PROTOCOLS_PER_MEMBER_MAX: Final = 100

# Settings of one resource that a request may change: there are 400 in all.
SETTINGS_PER_RESOURCE_MAX: Final = 1_000

# Groups that may have settings of their own.  Each takes a row of the metadata, even if the group
# does not exist.
GROUPS_WITH_SETTINGS_MAX: Final = 10_000

# A group's id with its settings, names and values: all names together take 700 bytes.  So the rows
# of all groups stay below 40 MiB.
GROUP_SETTINGS_BYTES_MAX: Final = 4 * 1024

# Topics or resources that one change of the metadata decides on, and partitions or settings that
# these have together: a change is decided on, applied and hosted in a turn.
TOPICS_PER_CHANGE_MAX: Final = 200
PARTITIONS_PER_CHANGE_MAX: Final = 20_000

# Producer ids reserved at once in the metadata: what a crash can waste.  Kafka's block size.
PRODUCER_IDS_PER_RESERVATION: Final = 1_000

# Exceptions below the watermark of a checkpoint of scheduled records: what is pending though
# something due later was released, which is what was parked in the last moments.  A checkpoint that
# would need more is left out, and an earlier one goes on to count.
CHECKPOINT_EXCEPTIONS_MAX: Final = 10_000

# Watermarks of a checkpoint: one, and one for each time that a clock was set back until it has
# caught up.
CHECKPOINT_WATERMARKS_MAX: Final = 16

# The latest time at which a record may be due: the end of the year 9999, the last one that RFC 3339
# can write.
DUE_MS_MAX: Final = 253_402_300_799_999

# Due times and ids of one batch: it is parked in one turn.
SCHEDULE_PLACES_MAX: Final = 10_000

# Batches in memory whose records are released one after the other: eight of the default of
# `max.message.bytes`.  One that is larger than all that is kept alone.
OPENED_BODIES_BYTES_MAX: Final = 8 * 1024 * 1024

# A note about scheduled records.  A checkpoint with all its exceptions has 80,000 bytes; that of a
# batch has its ids, and 14 bytes for each due time.
SCHEDULE_NOTE_BYTES_MAX: Final = 4 * 1024 * 1024

# An id of a scheduled record; all that wait are in memory.
SCHEDULE_ID_BYTES_MAX: Final = 1024

# Headers of a record that are looked at for when it is due and for its id: two bytes in a batch, or
# none in a compressed one, are one of them.
SCHEDULE_HEADERS_MAX: Final = 1_000

# Recurring records of one partition.  Each checkpoint names all of them, with 24 bytes each.
RECURRING_RECORDS_MAX: Final = 10_000

# Those in a checkpoint.  One that would need more is left out: a cancel that was lost may have
# brought some back.
CHECKPOINT_RECURRING_MAX: Final = 20_000

# Releases of one recurring record under way: what was missed for months comes in portions.
INSTANCES_UNDER_WAY_MAX: Final = 100

# Cron expressions in memory that were read: some 50 KB each at most.
CRONS_KEPT_MAX: Final = 64

# Checkpoints of one leader epoch that a start keeps in mind while it reads them.  The last one
# counts but for an unclean election.
CHECKPOINTS_KEPT_PER_EPOCH: Final = 16

# Releases that a partition remembers, to tell who wants to cancel what has come: half a megabyte
# without ids.
SCHEDULE_RELEASED_KEPT: Final = 4_096

# Entries of a page of what waits in one partition, and buckets of a histogram.
SCHEDULE_PAGE_ENTRIES_MAX: Final = 10_000
SCHEDULE_BUCKETS_MAX: Final = 1_000

# Sentences kept of what a start cannot read of a companion log; the rest is counted.
SCHEDULE_FLAWS_KEPT: Final = 20
