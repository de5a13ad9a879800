/*
 * Kafka's own Java client, driven by lines of JSON: a command a line on standard input, its answer
 * a line on standard output ({"answer": ...} or {"error": "..."}).  "send" has no answer of its own.
 */

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

public class Client {
    static final ObjectMapper JSON = new ObjectMapper();
    /** How long a test waits for another program. */
    static final int PATIENCE_S = 300;
    static final Map<Integer, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();
    static final Map<Integer, List<Future<RecordMetadata>>> SENT = new HashMap<>();
    static int producerIds = 0;

    public static void main(String[] arguments) throws Exception {
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode command = JSON.readTree(line);
            if (command.get("do").asText().equals("send")) {
                send(command);
                continue;
            }
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("answer", handle(command));
            } catch (ExecutionException error) {
                answer.put("error", String.valueOf(error.getCause()));
            } catch (Exception error) {
                answer.put("error", String.valueOf(error));
            }
            output.println(JSON.writeValueAsString(answer));
        }
    }

    static Object handle(JsonNode command) throws Exception {
        switch (command.get("do").asText()) {
            case "version":
                return AppInfoParser.getVersion();
            case "open producer":
                return openProducer(command);
            case "flush":
                return flush(command);
            case "close producer":
                PRODUCERS.remove(command.get("producer").asInt()).close(Duration.ofSeconds(2));
                return null;
            case "begin transactions":
                return beginTransactions(command);
            case "transaction":
                return transaction(command);
            case "subscribe":
                return subscribe(command);
            case "read":
                return read(command);
            case "end offset":
                return endOffset(command);
            case "offset for time":
                return offsetForTime(command);
            default:
                return administer(command);
        }
    }

    static Properties settings(JsonNode command) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", command.get("address").asText());
        settings.put("reconnect.backoff.max.ms", "200");
        if (command.has("settings")) {
            command.get("settings").fields()
                .forEachRemaining(one -> settings.put(one.getKey(), one.getValue().asText()));
        }
        return settings;
    }

    /** Settings of a consumer or an administrator, whose calls wait as long as a test does. */
    static Properties patientSettings(JsonNode command) {
        Properties settings = settings(command);
        settings.putIfAbsent("default.api.timeout.ms", PATIENCE_S * 1_000);
        return settings;
    }

    static Object openProducer(JsonNode command) {
        producerIds += 1;
        Properties settings = settings(command);
        // A machine that does other work besides must not fail a test.
        settings.putIfAbsent("max.block.ms", PATIENCE_S * 1_000);
        settings.putIfAbsent("delivery.timeout.ms", PATIENCE_S * 1_000);
        PRODUCERS.put(
            producerIds,
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer()));
        SENT.put(producerIds, new ArrayList<>());
        return producerIds;
    }

    static void send(JsonNode command) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode pair : command.get("headers")) {
            headers.add(new RecordHeader(pair.get(0).asText(), bytes(pair.get(1))));
        }
        JsonNode timestamp = command.get("timestamp");
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
            command.get("topic").asText(),
            command.get("partition").asInt(),
            timestamp.isNull() ? null : timestamp.asLong(),
            bytes(command.get("key")),
            bytes(command.get("value")),
            headers);
        int producer = command.get("producer").asInt();
        SENT.get(producer).add(PRODUCERS.get(producer).send(record));
    }

    static Object flush(JsonNode command) throws Exception {
        int producer = command.get("producer").asInt();
        PRODUCERS.get(producer).flush();
        List<Long> offsets = new ArrayList<>();
        List<Future<RecordMetadata>> sent = SENT.put(producer, new ArrayList<>());
        for (Future<RecordMetadata> one : sent) {
            offsets.add(one.get(PATIENCE_S, TimeUnit.SECONDS).offset());
        }
        return offsets;
    }

    static Object beginTransactions(JsonNode command) {
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                settings(command), new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
        }
        return null;
    }

    /** A step of a transaction of an open producer: init, begin, commit or abort. */
    static Object transaction(JsonNode command) {
        KafkaProducer<byte[], byte[]> producer = PRODUCERS.get(command.get("producer").asInt());
        switch (command.get("step").asText()) {
            case "init":
                producer.initTransactions();
                break;
            case "begin":
                producer.beginTransaction();
                break;
            case "commit":
                producer.commitTransaction();
                break;
            default:
                producer.abortTransaction();
        }
        return null;
    }

    /** How many records come within a while to a member of a group, whatever its protocol. */
    static Object subscribe(JsonNode command) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            consumer.subscribe(List.of(command.get("topic").asText()));
            return consumer.poll(Duration.ofSeconds(PATIENCE_S)).count();
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode command) {
        return new KafkaConsumer<>(
            patientSettings(command), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static TopicPartition partition(JsonNode command) {
        return new TopicPartition(
            command.get("topic").asText(), command.get("partition").asInt());
    }

    static Object read(JsonNode command) {
        int count = command.get("count").asInt();
        List<Object> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            consumer.assign(List.of(partition(command)));
            consumer.seek(partition(command), command.get("offset").asLong());
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
            while (found.size() < count && System.nanoTime() < end) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(200))) {
                    if (found.size() < count) {
                        found.add(fields(one));
                    }
                }
            }
        }
        return found;
    }

    static Object fields(ConsumerRecord<byte[], byte[]> one) {
        List<Object> headers = new ArrayList<>();
        for (Header header : one.headers()) {
            List<Object> pair = new ArrayList<>();
            Collections.addAll(pair, header.key(), text(header.value()));
            headers.add(pair);
        }
        List<Object> fields = new ArrayList<>();
        Collections.addAll(
            fields, one.offset(), one.timestamp(), text(one.key()), text(one.value()), headers);
        return fields;
    }

    static Object endOffset(JsonNode command) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            return consumer.endOffsets(List.of(partition(command))).get(partition(command));
        }
    }

    static Object offsetForTime(JsonNode command) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            OffsetAndTimestamp found = consumer
                .offsetsForTimes(Map.of(partition(command), command.get("timestamp").asLong()))
                .get(partition(command));
            return found == null ? null : found.offset();
        }
    }

    static Object administer(JsonNode command) throws Exception {
        try (Admin admin = Admin.create(patientSettings(command))) {
            String topic = command.path("topic").asText();
            switch (command.get("do").asText()) {
                case "create topic":
                    return createTopic(admin, command);
                case "delete topic":
                    admin.deleteTopics(List.of(topic)).all().get();
                    return null;
                case "list topics":
                    return new ArrayList<>(admin.listTopics().names().get());
                case "describe topic":
                    return topicFacts(
                        admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic));
                case "describe configs":
                    return describeConfigs(admin, command);
                case "describe cluster":
                    return clusterFacts(admin.describeCluster());
                case "list offsets":
                    return listOffsets(admin, command);
                case "describe producers":
                    return describeProducers(admin, command);
                case "list config resources":
                    return listConfigResources(admin);
                default:
                    throw new IllegalArgumentException(command.toString());
            }
        }
    }

    static Object createTopic(Admin admin, JsonNode command) throws Exception {
        Map<String, String> configs = new HashMap<>();
        command.get("configs").fields()
            .forEachRemaining(one -> configs.put(one.getKey(), one.getValue().asText()));
        String topic = command.get("topic").asText();
        NewTopic wanted = new NewTopic(
            topic, Optional.of(command.get("partitions").asInt()), Optional.empty());
        return admin.createTopics(List.of(wanted.configs(configs)))
            .topicId(topic).get().toString();
    }

    static Object topicFacts(TopicDescription topic) {
        Map<String, Object> facts = new TreeMap<>();
        facts.put("name", topic.name());
        facts.put("id", topic.topicId().toString());
        facts.put("internal", topic.isInternal());
        List<Object> partitions = new ArrayList<>();
        topic.partitions().forEach(one -> partitions.add(List.of(
            one.partition(), one.leader().id(), one.replicas().size(), one.isr().size())));
        facts.put("partitions", partitions);
        return facts;
    }

    static Object describeConfigs(Admin admin, JsonNode command) throws Exception {
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.valueOf(command.get("kind").asText()),
            command.get("name").asText());
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        Map<String, Object> facts = new TreeMap<>();
        for (ConfigEntry entry : config.entries()) {
            List<Object> fields = new ArrayList<>();
            Collections.addAll(fields, entry.value(), entry.source().toString());
            facts.put(entry.name(), fields);
        }
        return facts;
    }

    static Object clusterFacts(DescribeClusterResult cluster) throws Exception {
        Map<String, Object> facts = new TreeMap<>();
        facts.put("id", cluster.clusterId().get());
        facts.put("controller", cluster.controller().get().id());
        List<Object> nodes = new ArrayList<>();
        cluster.nodes().get().forEach(
            one -> nodes.add(List.of(one.id(), one.host() + ":" + one.port())));
        facts.put("nodes", nodes);
        return facts;
    }

    static Object listOffsets(Admin admin, JsonNode command) throws Exception {
        Map<String, OffsetSpec> specs = Map.of(
            "earliest", OffsetSpec.earliest(),
            "latest", OffsetSpec.latest(),
            "max timestamp", OffsetSpec.maxTimestamp(),
            "time", OffsetSpec.forTimestamp(command.path("timestamp").asLong()));
        Map<String, Object> facts = new TreeMap<>();
        for (Map.Entry<String, OffsetSpec> spec : specs.entrySet()) {
            ListOffsetsResultInfo found = admin
                .listOffsets(Map.of(partition(command), spec.getValue()))
                .partitionResult(partition(command)).get();
            facts.put(spec.getKey(), List.of(found.offset(), found.timestamp()));
        }
        return facts;
    }

    static Object describeProducers(Admin admin, JsonNode command) throws Exception {
        List<Object> facts = new ArrayList<>();
        for (ProducerState one : admin.describeProducers(List.of(partition(command)))
                .partitionResult(partition(command)).get().activeProducers()) {
            facts.add(List.of(
                one.producerEpoch(), one.lastSequence(), one.lastTimestamp(),
                one.coordinatorEpoch().isPresent(),
                one.currentTransactionStartOffset().isPresent()));
        }
        return facts;
    }

    static Object listConfigResources(Admin admin) throws Exception {
        List<Object> facts = new ArrayList<>();
        for (ConfigResource one : admin.listConfigResources(
                Set.of(), new ListConfigResourcesOptions()).all().get()) {
            facts.add(List.of(one.type().toString(), one.name()));
        }
        return facts;
    }

    static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
