"""Settings of other Kafka clients, and what replaces them here, for the text of an error.

The table has keys of Java's client and of librdkafka, and arguments of kafka-python and aiokafka;
an underscore counts as a dot.
"""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
api.version                        versions are agreed upon with each broker; leave it out
api.version.auto.timeout.ms        use socket.connection.setup.timeout.ms
api.version.fallback.ms            versions are agreed upon with each broker; leave it out
api.version.request                versions are agreed upon with each broker; leave it out
api.version.request.timeout.ms     use socket.connection.setup.timeout.ms
auto.commit.enable                 use enable.auto.commit
auto.include.jmx.reporter          call metrics()
batch.num.messages                 use batch.size
bootstrap.brokers                  use bootstrap.servers
bootstrap.timeout.ms               use default.api.timeout.ms
broker.address.family              every address that the host's name has is tried; leave it out
broker.address.ttl                 names are looked up for each new connection; leave it out
broker.version.fallback            versions are agreed upon with each broker; leave it out
builtin.features                   leave it out
check.crcs                         every batch is checked; leave it out
client.dns.lookup                  every address that the host's name has is tried; leave it out
client.software.name               leave it out
compression.codec                  use compression.type
compression.level                  use compression.gzip.level, .lz4.level or .zstd.level
config.providers                   read secrets yourself, and give their values
consume.callback.max.messages      use max.poll.records
consumer.timeout.ms                give poll a timeout, or call wakeup to end an iteration
coordinator.query.interval.ms      the coordinator is looked up when it is needed; leave it out
debug                              use the module logging, logger "tarry.client"
default.offset.commit.callback     give commit_async a callback
delivery.report.only.error         the argument on_delivery is called with every receipt
dr.cb                              use the argument on_delivery
dr.msg.cb                          use the argument on_delivery
enable.auto.offset.store           a record is finished when the next one is asked for
enable.gapless.guarantee           use enable.idempotence
enable.incremental.fetch.sessions  sessions are used where brokers have them; leave it out
enable.metrics.push                call metrics()
enable.partition.eof               ask is_at_end, or lag
enable.random.seed                 leave it out
enable.sparse.connections          connections are made when they are needed; leave it out
enabled.events                     give a Listener, or the argument on_delivery
error.cb                           errors are raised; what lasts is logged by "tarry.client.waiting"
fetch.error.backoff.ms             use retry.backoff.ms
fetch.message.max.bytes            use max.partition.fetch.bytes
fetch.queue.backoff.ms             fetch.max.bytes bounds what is read ahead; leave it out
fetch.wait.max.ms                  use fetch.max.wait.ms
group.protocol                     groups use the classic protocol; leave it out
group.protocol.type                leave it out
group.remote.assignor              groups use the classic protocol; leave it out
interceptor.classes                there are no interceptors; wrap send or poll
internal.termination.signal        leave it out
kafka.client                       leave it out
key.deserializer                   use the argument key with a codec, such as Text()
key.serializer                     use the argument key with a codec, such as Text()
log.cb                             use the module logging, logger "tarry.client"
log.connection.close               use the module logging, logger "tarry.client"
log.level                          use the module logging, logger "tarry.client"
log.queue                          use the module logging, logger "tarry.client"
log.thread.name                    use the module logging, logger "tarry.client"
logger                             use the module logging, logger "tarry.client"
loop                               the client belongs to the loop that runs; leave it out
max.batch.size                     use batch.size
max.in.flight                      use max.in.flight.requests.per.connection
message.copy.max.bytes             records are copied once; leave it out
message.max.bytes                  use max.request.size
message.send.max.retries           retries go on until delivery.timeout.ms
message.timeout.ms                 use delivery.timeout.ms
metadata.broker.list               use bootstrap.servers
metadata.max.idle.ms               topics are asked about while they are in use; leave it out
metadata.recovery.rebootstrap.trigger.ms bootstrap.servers are asked again in time; leave it out
metadata.recovery.strategy         bootstrap.servers are asked again in time; leave it out
metadata.request.timeout.ms        use request.timeout.ms
metric.group.prefix                call metrics()
metric.reporters                   call metrics()
metrics.enabled                    call metrics()
metrics.num.samples                call metrics()
metrics.recording.level            call metrics()
metrics.sample.window.ms           call metrics()
offset.commit.cb                   give commit_async a callback
offset.store.method                offsets are kept by the group; leave it out
offset.store.path                  offsets are kept by the group; leave it out
offset.store.sync.interval.ms      offsets are kept by the group; leave it out
on.commit                          give commit_async a callback
on.delivery                        use the argument on_delivery
open.cb                            leave it out
partition.assignors                use partition.assignment.strategy
partitioner.adaptive.partitioning.enable records without a key change partition after each batch
partitioner.availability.timeout.ms records without a key change partition after each batch
partitioner.class                  use partitioner
partitioner.ignore.keys            give a function as partitioner
produce.offset.report              receipts have offsets; leave it out
proxy.url                          there are no proxies; give addresses that can be reached
queue.buffering.backpressure.threshold use linger.ms
queue.buffering.max.kbytes         use buffer.memory
queue.buffering.max.messages       buffer.memory bounds the bytes instead
queue.buffering.max.ms             use linger.ms
queued.max.messages.kbytes         use fetch.max.bytes
queued.min.messages                fetch.max.bytes bounds what is read ahead; leave it out
queuing.strategy                   records are sent in their order; leave it out
rebalance.cb                       give a Listener
rebalance.timeout.ms               use max.poll.interval.ms
receive.message.max.bytes          use fetch.max.bytes
reconnect.backoff.jitter.ms        pauses differ by a fifth at random; leave it out
request.required.acks              use acks
request.timeout                    use request.timeout.ms
retries                            retries go on until delivery.timeout.ms
retry.backoff                      use retry.backoff.ms
security.providers                 there is no TLS yet
selector                           the client waits by itself; leave it out
share.acknowledgement.mode         there are no share groups yet
sock.chunk.buffer.count            leave it out
sock.chunk.bytes                   leave it out
socket.blocking.max.ms             leave it out
socket.cb                          leave it out
socket.connection.setup.timeout.max.ms use socket.connection.setup.timeout.ms
socket.keepalive.enable            a silent broker is noticed by request.timeout.ms; leave it out
socket.max.fails                   use reconnect.backoff.ms
socket.nagle.disable               requests leave at once; leave it out
socket.options                     use send.buffer.bytes and receive.buffer.bytes
socket.receive.buffer.bytes        use receive.buffer.bytes
socket.send.buffer.bytes           use send.buffer.bytes
socket.timeout.ms                  use request.timeout.ms
socks5.proxy                       there are no proxies; give addresses that can be reached
statistics.interval.ms             call metrics() when you want them
stats.cb                           call metrics()
sticky.partitioning.linger.ms      records without a key change partition after each batch
test.mock.broker.rtt               tarry.testing has brokers for tests
test.mock.num.brokers              tarry.testing has brokers for tests
throttle.cb                        a throttled client waits by itself; leave it out
topic.metadata.propagation.max.ms  a new topic is waited for max.block.ms at most
topic.metadata.refresh.fast.cnt    use retry.backoff.ms
topic.metadata.refresh.fast.interval.ms use retry.backoff.ms
topic.metadata.refresh.interval.ms use metadata.max.age.ms
topic.metadata.refresh.sparse      only topics in use are asked about; leave it out
transaction.timeout.ms             there are no transactions yet
transaction.two.phase.commit.enable there are no transactions yet
transactional.id                   there are no transactions yet
value.deserializer                 use the argument value with a codec, such as Json()
value.serializer                   use the argument value with a codec, such as Json()
"""

# Hints for all keys with these beginnings.
_BEGINNINGS: Final = {
    "ssl.": "there is no TLS yet",
    "sasl.": "there is no SASL yet",
    "enable.ssl.": "there is no TLS yet",
    "enable.sasl.": "there is no SASL yet",
}

_HINTS: Final = dict(line.split(maxsplit=1) for line in _TABLE.strip().splitlines())


def foreign_hint(name: str) -> str:
    """Return the hint for another client's setting; "" if no known client has the name."""
    dotted = name.replace("_", ".")
    for beginning, hint in _BEGINNINGS.items():
        if dotted.startswith(beginning):
            return hint
    return _HINTS.get(dotted, "")
