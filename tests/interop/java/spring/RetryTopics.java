import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.retrytopic.RetryTopicConfiguration;
import org.springframework.kafka.retrytopic.RetryTopicConfigurationBuilder;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * A listener of Spring for Apache Kafka with retry topics: passes each record on under its key; one
 * in ten fails at first and passes by the retry topic.
 *
 *     RetryTopics ADDRESS FROM TO
 */
@Configuration(proxyBeanMethods = false)
@EnableKafkaRetryTopic
public class RetryTopics {
    private static final String ADDRESS = System.getProperty("address");
    private static final String FROM = System.getProperty("from");

    @Bean
    public KafkaTemplate<String, String> kafkaTemplate() {
        return new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(
            Map.of("bootstrap.servers", ADDRESS), new StringSerializer(), new StringSerializer()));
    }

    @Bean
    public ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory() {
        var made = new ConcurrentKafkaListenerContainerFactory<String, String>();
        made.setConsumerFactory(new DefaultKafkaConsumerFactory<>(
            Map.of("bootstrap.servers", ADDRESS, "auto.offset.reset", "earliest"),
            new StringDeserializer(), new StringDeserializer()));
        return made;
    }

    @Bean
    public KafkaAdmin kafkaAdmin() {
        return new KafkaAdmin(Map.of("bootstrap.servers", ADDRESS));
    }

    @Bean
    public TaskScheduler scheduler() {
        return new ThreadPoolTaskScheduler();
    }

    @Bean
    public RetryTopicConfiguration retries(KafkaTemplate<String, String> template) {
        return RetryTopicConfigurationBuilder.newInstance()
            .fixedBackOff(300)
            .maxAttempts(3)
            .autoCreateTopics(true, 3, (short) 1)
            .includeTopic(FROM)
            .create(template);
    }

    @Bean
    public Listener listener(KafkaTemplate<String, String> template) {
        return new Listener(template);
    }

    public static class Listener {
        private final KafkaTemplate<String, String> template;

        Listener(KafkaTemplate<String, String> template) {
            this.template = template;
        }

        @KafkaListener(id = "passing", topics = "${from}")
        public void passOn(ConsumerRecord<String, String> record) throws Exception {
            if (record.topic().equals(FROM) && record.value().endsWith("7")) {
                throw new IllegalStateException("this one passes by the retry topic");
            }
            template.send(System.getProperty("to"), record.key(), record.value()).get();
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (var context = new AnnotationConfigApplicationContext(RetryTopics.class)) {
            while (System.in.read() >= 0)
                ;
        }
    }
}
