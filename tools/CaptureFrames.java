import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Sends one request of each kind to the listener of capture_frames.py. */
public class CaptureFrames {
    interface Call { void run() throws Exception; }

    static void quietly(Call call) {
        try {
            call.run();
        } catch (Exception error) {
            System.err.println(error);
        }
    }

    public static void main(String[] arguments) {
        String strings = "org.apache.kafka.common.serialization.String";
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("key.serializer", strings + "Serializer");
        settings.put("value.serializer", strings + "Serializer");
        settings.put("key.deserializer", strings + "Deserializer");
        settings.put("value.deserializer", strings + "Deserializer");
        settings.put("default.api.timeout.ms", "5000");
        settings.put("request.timeout.ms", "4000");
        String topic = "golden";
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(settings)) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            quietly(() -> admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get());
            quietly(() -> admin.describeConfigs(List.of(resource)).all().get());
            quietly(() -> admin.describeCluster().nodes().get());
            quietly(() -> admin.describeTopics(List.of(topic)).allTopicNames().get());
            quietly(() -> admin.listTopics().names().get());
            quietly(() -> admin.deleteTopics(List.of(topic)).all().get());
        }
        ProducerRecord<String, String> record =
            new ProducerRecord<>(topic, 0, 1000L, "key", "golden value, ".repeat(20));
        settings.put("compression.type", "lz4");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            quietly(() -> producer.send(record).get());
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(List.of(partition));
            quietly(() -> consumer.offsetsForTimes(Map.of(partition, 1000L)));
            consumer.seekToBeginning(Set.of(partition));
            quietly(() -> consumer.poll(Duration.ofSeconds(1)));
        }
    }
}
