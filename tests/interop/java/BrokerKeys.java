import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.AbstractKafkaConfig;

/** Prints every broker key that this Kafka knows: name, type, default, validator. */
public class BrokerKeys {
    public static void main(String[] arguments) {
        for (var key : new TreeMap<>(AbstractKafkaConfig.CONFIG_DEF.configKeys()).values()) {
            var standard = key.hasDefault() ? "" + key.defaultValue : "<required>";
            var validator = key.validator == null ? "" : "\t" + key.validator;
            System.out.println((key.name + "\t" + key.type + "\t" + standard + validator).strip());
        }
    }
}
