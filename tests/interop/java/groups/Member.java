import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** One member in a thread of its own: it reads all it is given and commits after each batch. */
class Member implements Runnable, ConsumerRebalanceListener {
    static final Duration POLL = Duration.ofMillis(100);

    final String name;
    final String topic;
    final KafkaConsumer<byte[], byte[]> consumer;
    volatile boolean isLeaving = false;

    Member(String name, JsonNode command) {
        this.name = name;
        topic = command.get("topic").asText();
        Properties settings = new Properties();
        command.get("settings").fields()
            .forEachRemaining(one -> settings.put(one.getKey(), one.getValue().asText()));
        consumer = new KafkaConsumer<>(
            settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread thread = new Thread(this, name);
        thread.setDaemon(true);
        thread.start();
    }

    void leave() {
        isLeaving = true;
    }

    @Override
    public void run() {
        consumer.subscribe(List.of(topic), this);
        while (!isLeaving) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
            if (!records.isEmpty()) {
                tell("read", facts(records));
                commit(records);
            }
        }
        consumer.close();
        tell("left", null);
    }

    void commit(ConsumerRecords<byte[], byte[]> records) {
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        List<Object> told = new ArrayList<>();
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> batch = records.records(partition);
            long end = batch.get(batch.size() - 1).offset() + 1;
            ends.put(partition, new OffsetAndMetadata(end));
            told.add(List.of(partition.partition(), end));
        }
        tell("committing", null);
        try {
            consumer.commitSync(ends);
            tell("committed", told);
        } catch (KafkaException refusal) {
            tell("refused", String.valueOf(refusal));
        }
    }

    static Object facts(ConsumerRecords<byte[], byte[]> records) {
        List<Object> facts = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> one : records) {
            facts.add(List.of(
                one.partition(), one.offset(), new String(one.value(), StandardCharsets.UTF_8)));
        }
        return facts;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tellPartitions("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        tellPartitions("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        tellPartitions("lost", partitions);
    }

    void tellPartitions(String what, Collection<TopicPartition> partitions) {
        if (!partitions.isEmpty()) {
            List<Integer> numbers = new ArrayList<>();
            partitions.forEach(one -> numbers.add(one.partition()));
            tell(what, numbers);
        }
    }

    void tell(String what, Object data) {
        List<Object> line = new ArrayList<>(List.of(name, System.nanoTime(), what));
        line.add(data);
        try {
            Groups.print(line);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
