"""Topic keys of Kafka 4.4, all of them: type, default and range, and what each means here.

The notation is that of `base/setting`.  A key is honoured, or kept without effect, so that topics
can be copied from a Kafka with all their settings, or accepted at its default only, if a user would
miss the effect of another value.  A key moves to the first table when Tarry honours it.
"""

from __future__ import annotations

from typing import Final

HONOURED_TABLE: Final = """
cleanup.policy                     list    delete      compact|delete behind=log.cleanup.policy
    delete: old segments are deleted. compact: only the last record of every key is kept.
    compact,delete: both are done.
compression.gzip.level             int     -1          -1|1..9 behind=compression.gzip.level
    How hard gzip tries when the broker compresses a batch (compression.type=gzip); -1: gzip's
    own default.
compression.lz4.level              int     9           1..17 behind=compression.lz4.level
    Like compression.gzip.level, for lz4. 9 is the fast form, as in Kafka; every other level is
    slower and makes smaller batches.
compression.type                   string  producer    uncompressed|zstd|lz4|snappy|gzip|producer \
behind=compression.type
    How record batches are stored. producer: as the producer compressed them. Every other value:
    the broker compresses them again in that form.
compression.zstd.level             int     3           -131072..22 behind=compression.zstd.level
    Like compression.gzip.level, for zstd. A level above 9 counts as 9, because a slower one
    would delay all other requests.
delete.retention.ms                long    86400000    0.. behind=log.cleaner.delete.retention.ms
    How long a compacted log keeps a tombstone (a record without value), so that slow readers
    see it.
flush.messages                     long    9223372036854775807 1.. \
behind=log.flush.interval.messages
    For flush.policy=os: a flush begins when this many records are not flushed. 1: a record is
    acknowledged after its flush, as with flush.policy=commit.
index.interval.bytes               int     4096        0.. behind=log.index.interval.bytes
    Bytes of a segment between two entries of its offset index.
max.compaction.lag.ms              long    9223372036854775807 1.. \
behind=log.cleaner.max.compaction.lag.ms
    A record older than this is compacted, even if its log is not dirty enough.
max.decompressed.message.bytes     int     2147483639  1..2147483639 \
behind=max.decompressed.message.bytes
    Largest record that the topic accepts in a compressed batch, decompressed. Below the default
    the broker decompresses every such batch, 16 MiB of it at most, and refuses one that is larger.
max.message.bytes                  int     1048588     0.. behind=message.max.bytes
    Largest record batch that the topic accepts.
message.timestamp.after.max.ms     long    3600000     0.. behind=log.message.timestamp.after.max.ms
    How far ahead of the broker's clock a record's timestamp may lie; not for LogAppendTime.
message.timestamp.before.max.ms    long    9223372036854775807 0.. \
behind=log.message.timestamp.before.max.ms
    How far behind the broker's clock a record's timestamp may lie; not for LogAppendTime.
message.timestamp.type             string  CreateTime  CreateTime|LogAppendTime \
behind=log.message.timestamp.type
    The time in a record. CreateTime: the producer's. LogAppendTime: the broker's.
min.cleanable.dirty.ratio          double  0.5         0..1 behind=log.cleaner.min.cleanable.ratio
    A log is compacted when at least this share of its bytes is not compacted yet.
min.compaction.lag.ms              long    0           0.. behind=log.cleaner.min.compaction.lag.ms
    A record younger than this is not removed by compaction.
min.insync.replicas                int     1           1.. behind=min.insync.replicas
    Replicas that must be in sync for a produce with acks=all.
retention.bytes                    long    -1 behind=log.retention.bytes
    The oldest segments of a partition larger than this are deleted; -1: no limit.
retention.ms                       long    604800000   -1.. \
behind=log.retention.ms,log.retention.minutes,log.retention.hours
    A segment whose newest record is older than this is deleted; -1: never.
segment.bytes                      int     1073741824  1048576.. behind=log.segment.bytes
    A log begins a new segment when the next batch would make it larger than this.
segment.index.bytes                int     10485760    4.. behind=log.index.size.max.bytes
    Largest offset index of a segment. When it is full, the log begins a new segment.
segment.jitter.ms                  long    0           0.. \
behind=log.roll.jitter.ms,log.roll.jitter.hours
    Largest random time by which segment.ms is shortened, so that not all logs begin a segment at
    once.
segment.ms                         long    604800000   1.. behind=log.roll.ms,log.roll.hours
    A log begins a new segment when its records span more than this time.
unclean.leader.election.enable     boolean false behind=unclean.leader.election.enable
    A replica that is not in sync may lead once no replica in sync has lived for ten seconds.
    Acknowledged records may be lost by it. A broker that is alone never needs it.
"""

# Keys that Kafka does not have.
OURS_TABLE: Final = """
delay.default.ms                   long    -1          -1.. tarry
    For delay.enable: every record waits so long, counted from the broker's clock at its append,
    until it appears; -1: delay.source says when records are due.
delay.enable                       boolean false       tarry
    Records that are due later are kept apart, and appear when they are due. delay.source or
    delay.default.ms says when that is; exactly one of them must. false: nothing more is delayed,
    and what is pending still appears when it is due.
delay.max.ms                       long    9223372036854775807 0.. tarry
    For delay.enable: a record that is due later than so long from now is refused.
delay.min.ms                       long    0           0.. tarry
    For delay.enable: a record that is due sooner than so long from now is not delayed.
delay.pending.max.bytes            long    -1          -1.. tarry
    For delay.enable: most bytes of record batches that wait in one partition; -1: no limit. A batch
    that would go beyond is refused. From nine tenths of it on, answers to producers ask for pauses.
delay.replace                      string  none        none|key tarry
    For delay.enable: key: a record that waits is named by its key, as x-sched-id names one. So a
    later record with that key that is to wait replaces it, and one with x-sched-cancel takes it
    back. A record's own x-sched-id counts in place of its key. none: x-sched-id alone names
    records.
delay.source                       string  none        none|timestamp|header tarry
    For delay.enable: what says when a record is due. timestamp: its timestamp, so that
    message.timestamp.after.max.ms does not apply. header: x-deliver-at (milliseconds since 1970 or
    RFC 3339) or x-deliver-after (milliseconds or 1h30m); a record with neither is due at once.
    none: delay.default.ms.
"""

WITHOUT_EFFECT_TABLE: Final = """
errors.deadletterqueue.group.enable boolean false
    No effect: there are no share groups yet.
file.delete.delay.ms               long    60000       0.. behind=log.segment.delete.delay.ms
    No effect: a deleted segment's file goes at once, and a reader that is being sent it gets all.
flush.ms                           long    9223372036854775807 0.. behind=log.flush.interval.ms
    No effect: flush.policy and flush.messages say when records are flushed.
follower.replication.throttled.replicas list ""
    No effect: there is no replication yet.
leader.replication.throttled.replicas list ""
    No effect: there is no replication yet.
local.retention.bytes              long    -2          -2.. behind=log.local.retention.bytes
    No effect: there is no tiered storage.
local.retention.ms                 long    -2          -2.. behind=log.local.retention.ms
    No effect: there is no tiered storage.
preallocate                        boolean false behind=log.preallocate
    No effect: segments grow as they are written.
remote.copy.lag.bytes              long    -1          -1.. behind=log.remote.copy.lag.bytes
    No effect: there is no tiered storage.
remote.copy.lag.ms                 long    0           -1.. behind=log.remote.copy.lag.ms
    No effect: there is no tiered storage.
remote.log.copy.disable            boolean false
    No effect: there is no tiered storage.
remote.log.delete.on.disable       boolean false
    No effect: there is no tiered storage.
"""

DEFAULT_ONLY_TABLE: Final = """
internal.segment.bytes             int     - hidden
    Kafka keeps it for its own tests; use segment.bytes.
remote.storage.enable              boolean false
    There is no tiered storage.
"""
