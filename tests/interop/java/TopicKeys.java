import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints every topic key that this Kafka knows: name, type, default, validator, synonyms. */
public class TopicKeys {
    public static void main(String[] arguments) throws Exception {
        var field = LogConfig.class.getDeclaredField("CONFIG");
        field.setAccessible(true);
        var keys = new TreeMap<>(((ConfigDef) field.get(null)).configKeys());
        for (var key : keys.values()) {
            var synonyms = new StringBuilder();
            var all = ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.get(key.name);
            if (all != null) {
                for (ConfigSynonym synonym : all) {
                    synonyms.append(synonym.name()).append(' ');
                }
            }
            var standard = ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(
                String.join("\t", key.name, key.type.toString(), "" + standard,
                    "" + key.validator, synonyms.toString().trim()));
        }
    }
}
