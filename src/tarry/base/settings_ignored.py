"""Kafka's keys that have no effect in Tarry, by the reason.

They are accepted at any value, so that a server.properties of any Kafka up to 4.4 loads, of the
years of ZooKeeper too; those that a user sets are named in one warning.  A key moves to
`settings_table` when Tarry honours it.
"""

from __future__ import annotations

from typing import Final

# Reason of the keys that promise protection.
NO_SECURITY: Final = "TLS, authentication and access control are not there yet"
_OF_OTHERS: Final = "belongs to another vendor's product or plug-in"

_KEYS_BY_REASON: Final = (
    (
        "belongs to KRaft's controllers, Tarry keeps its metadata itself",
        """
        controlled.shutdown.enable controller.performance.always.log.threshold.ms
        controller.performance.sample.period.ms controller.quorum.append.linger.ms
        controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
        controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
        controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
        controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
        controller.quorum.retry.backoff.ms controller.quorum.voters controller.quota.window.num
        controller.quota.window.size.seconds controller.socket.timeout.ms early.start.listeners
        eligible.leader.replicas.enable initial.broker.registration.timeout.ms
        internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes internal.metadata.max.fetch.size.in.bytes
        metadata.log.dir metadata.log.max.record.bytes.between.snapshots
        metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
        metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
        process.roles server.max.startup.time.ms unstable.api.versions.enable
        unstable.feature.versions.enable
        """,
    ),
    (
        "belongs to ZooKeeper or to a version before 4.0",
        """
        broker.id.generation.enable control.plane.listener.name controlled.shutdown.max.retries
        controlled.shutdown.retry.backoff.ms inter.broker.protocol.version
        log.message.downconversion.enable log.message.format.version
        log.message.timestamp.difference.max.ms offsets.commit.required.acks reserved.broker.max.id
        zookeeper.clientCnxnSocket zookeeper.connect zookeeper.connection.timeout.ms
        zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable
        zookeeper.metadata.migration.min.batch.size
        zookeeper.session.timeout.ms zookeeper.set.acl zookeeper.ssl.cipher.suites
        zookeeper.ssl.client.enable zookeeper.ssl.crl.enable zookeeper.ssl.enabled.protocols
        zookeeper.ssl.endpoint.identification.algorithm zookeeper.ssl.keystore.location
        zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type zookeeper.ssl.ocsp.enable
        zookeeper.ssl.protocol zookeeper.ssl.truststore.location zookeeper.ssl.truststore.password
        zookeeper.ssl.truststore.type zookeeper.sync.time.ms
        """,
    ),
    (
        "tunes Kafka's way of replication, which Tarry does in its own",
        """
        alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds
        log.dir.failure.timeout.ms num.replica.alter.log.dirs.threads num.replica.fetchers
        replica.high.watermark.checkpoint.interval.ms
        replica.selector.class replica.socket.receive.buffer.bytes
        replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms
        security.inter.broker.protocol socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms unclean.leader.election.interval.ms
        """,
    ),
    (
        "the new consumer protocol is not there yet",
        """
        group.consumer.assignment.interval.ms group.consumer.assignor.offload.enable
        group.consumer.assignors group.consumer.heartbeat.interval.ms
        group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
        group.consumer.max.session.timeout.ms group.consumer.max.size
        group.consumer.migration.policy group.consumer.min.assignment.interval.ms
        group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
        group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
        group.coordinator.background.threads group.coordinator.new.enable
        group.coordinator.rebalance.protocols group.streams.acceptable.recovery.lag
        group.streams.assignment.interval.ms group.streams.assignor.offload.enable
        group.streams.assignors group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms
        group.streams.max.size group.streams.max.standby.replicas group.streams.max.warmup.replicas
        group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
        group.streams.min.session.timeout.ms group.streams.min.task.offset.interval.ms
        group.streams.num.standby.replicas group.streams.num.warmup.replicas
        group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms
        group.streams.task.offset.interval.ms group.streams.topology.description.plugin.class
        """,
    ),
    (
        "transactions are not there yet",
        """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
        transaction.abort.timed.out.transaction.cleanup.interval.ms
        transaction.partition.verification.enable
        transaction.remove.expired.transaction.cleanup.interval.ms
        transaction.state.log.load.buffer.size transaction.state.log.min.isr
        transaction.state.log.num.partitions transaction.state.log.replication.factor
        transaction.state.log.segment.bytes transaction.two.phase.commit.enable
        transactional.id.expiration.ms
        """,
    ),
    (
        "share groups are not there yet",
        """
        errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
        group.share.assignment.interval.ms group.share.assignor.offload.enable group.share.assignors
        group.share.delivery.count.limit group.share.dlq.manager.class.name group.share.enable
        group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms
        group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
        group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
        group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms
        group.share.max.share.sessions group.share.max.size group.share.min.assignment.interval.ms
        group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms
        group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
        group.share.min.session.timeout.ms group.share.partition.max.record.locks
        group.share.persister.class.name group.share.record.lock.duration.ms
        group.share.session.timeout.ms share.coordinator.append.linger.ms
        share.coordinator.cached.buffer.max.bytes
        share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot
        share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
        share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
        share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
        share.coordinator.threads share.coordinator.write.timeout.ms
        share.fetch.purgatory.purge.interval.requests
        """,
    ),
    (
        NO_SECURITY,
        """
        allow.everyone.if.no.acl.found connection.failed.authentication.delay.ms
        connections.max.reauth.ms delegation.token.expiry.check.interval.ms
        delegation.token.expiry.time.ms delegation.token.master.key delegation.token.max.lifetime.ms
        delegation.token.secret.key password.encoder.cipher.algorithm password.encoder.iterations
        password.encoder.key.length password.encoder.keyfactory.algorithm
        password.encoder.old.secret password.encoder.secret principal.builder.class
        sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.jaas.config
        sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
        sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
        sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
        sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
        sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
        sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol
        sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
        sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
        sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
        sasl.oauthbearer.token.endpoint.url sasl.server.callback.handler.class
        sasl.server.max.receive.size security.providers ssl.allow.dn.changes ssl.allow.san.changes
        ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
        ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
        ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
        ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.principal.mapping.rules
        ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
        ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
        ssl.truststore.type super.users
        """,
    ),
    (
        "compaction is always there, in small steps",
        """
        log.cleaner.enable log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
        log.cleaner.io.max.bytes.per.second log.cleaner.threads
        """,
    ),
    (
        "committed offsets are written and read as they come",
        """
        group.coordinator.append.linger.ms group.coordinator.cached.buffer.max.bytes
        group.coordinator.threads offsets.load.buffer.size offsets.topic.compression.codec
        """,
    ),
    (
        "quotas and fetch sessions are not there yet",
        """
        client.quota.callback.class
        max.incremental.fetch.session.cache.slots quota.consumer.default quota.producer.default
        quota.window.num quota.window.size.seconds
        """,
    ),
    (
        "metrics are not there yet",
        """
        auto.include.jmx.reporter kafka.metrics.polling.interval.secs kafka.metrics.reporters
        metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
        telemetry.max.bytes
        """,
    ),
    (
        "there is no tiered storage",
        """
        follower.fetch.last.tiered.offset.enable log.local.retention.bytes log.local.retention.ms
        log.remote.copy.lag.bytes log.remote.copy.lag.ms remote.fetch.max.wait.ms
        remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
        remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
        remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks
        remote.log.reader.threads remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
        """,
    ),
    (
        "classes are not loaded",
        """
        alter.config.policy.class.name config.providers create.topic.policy.class.name
        """,
    ),
    (
        "all data lies in one directory",
        """
        cordoned.log.dirs
        """,
    ),
    (
        "flush.policy says when bytes are flushed",
        """
        log.flush.interval.ms log.flush.offset.checkpoint.interval.ms
        log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms
        log.preallocate
        """,
    ),
    (
        "one loop does this work",
        """
        background.threads delete.records.purgatory.purge.interval.requests
        log.initial.task.delay.ms num.io.threads num.network.threads
        num.recovery.threads.per.data.dir queued.max.requests
        """,
    ),
)

# Prefixes of the settings of plug-ins and of single listeners, each with its reason.
_REASONS_BY_PREFIX: Final = (
    ("config.providers.", "classes are not loaded"),
    ("listener.name.", NO_SECURITY),
    ("rlmm.config.", "there is no tiered storage"),
    ("rsm.config.", "there is no tiered storage"),
    ("client.quota.callback.", "quotas and fetch sessions are not there yet"),
    ("aiven.", _OF_OTHERS),
    ("automq.", _OF_OTHERS),
    ("confluent.", _OF_OTHERS),
    ("cruise.control.", _OF_OTHERS),
    ("io.confluent.", _OF_OTHERS),
    ("ldap.", NO_SECURITY),
    ("oauth.", NO_SECURITY),
    ("s3.", _OF_OTHERS),
    ("schema.registry.", _OF_OTHERS),
    ("strimzi.", _OF_OTHERS),
)

REASONS: Final[dict[str, str]] = {
    key: reason for reason, keys in _KEYS_BY_REASON for key in keys.split()
}


def reason_without_effect(key: str) -> str | None:
    """Return why a key of Kafka's does nothing here; None if it is not such a key."""
    known = REASONS.get(key)
    if known is not None:
        return known
    for prefix, reason in _REASONS_BY_PREFIX:
        if key.startswith(prefix):
            return reason
    return None
