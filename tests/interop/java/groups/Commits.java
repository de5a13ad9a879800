import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What a consumer is told of its offset right behind an asynchronous commit of it. */
class Commits {
    static List<Long> seen(JsonNode command) {
        Properties settings = new Properties();
        command.get("settings").fields()
            .forEachRemaining(one -> settings.put(one.getKey(), one.getValue().asText()));
        TopicPartition partition = new TopicPartition(command.get("topic").asText(), 0);
        List<Long> seen = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0)));
            for (int offset = 1; offset <= command.get("count").asInt(); offset++) {
                consumer.commitAsync(Map.of(partition, new OffsetAndMetadata(offset)), null);
                seen.add(consumer.committed(Set.of(partition)).get(partition).offset());
            }
        }
        return seen;
    }
}
