import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Joins a share group, polls until an error comes or the seconds are over, and prints what came. */
public class ShareConsumer {
    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[1],
            "key.deserializer", StringDeserializer.class,
            "value.deserializer", StringDeserializer.class);
        var end = System.nanoTime() + Duration.ofSeconds(Long.parseLong(arguments[2])).toNanos();
        var told = "nothing";
        var consumer = new KafkaShareConsumer<String, String>(settings);
        try {
            consumer.subscribe(List.of("orders"));
            while (told.equals("nothing") && System.nanoTime() < end) {
                consumer.poll(Duration.ofSeconds(1));
            }
        } catch (RuntimeException error) {
            told = error.toString();
        }
        System.out.println(told);
        consumer.close(Duration.ofSeconds(1));
    }
}
