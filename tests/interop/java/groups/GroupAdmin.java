import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The calls of Kafka's admin client about groups, offsets, settings, partitions and records. */
class GroupAdmin {
    static final Map<String, Admin> ADMINS = new HashMap<>();

    static Object handle(JsonNode command) throws Exception {
        Admin admin = ADMINS.computeIfAbsent(command.get("address").asText(), address -> {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", address);
            settings.put("reconnect.backoff.max.ms", "200");
            // As long as a test waits for another program.
            settings.put("default.api.timeout.ms", "300000");
            return Admin.create(settings);
        });
        String group = command.path("group").asText();
        String topic = command.path("topic").asText();
        switch (command.get("do").asText()) {
            case "create topic":
                admin.createTopics(List.of(
                    new NewTopic(topic, command.get("partitions").asInt(), (short) 1)
                        .configs(texts(command.path("configs"))))).all().get();
                return null;
            case "list groups":
                return listGroups(admin, command);
            case "describe group":
                return facts(admin.describeConsumerGroups(List.of(group))
                    .describedGroups().get(group).get());
            case "delete group":
                admin.deleteConsumerGroups(List.of(group)).all().get();
                return null;
            case "offsets":
                return offsets(admin.listConsumerGroupOffsets(group)
                    .partitionsToOffsetAndMetadata(group).get());
            case "alter offsets":
                admin.alterConsumerGroupOffsets(group, wantedOffsets(command)).all().get();
                return null;
            case "delete offsets":
                admin.deleteConsumerGroupOffsets(group, Set.of(partition(command))).all().get();
                return null;
            case "remove member":
                admin.removeMembersFromConsumerGroup(group,
                    new RemoveMembersFromConsumerGroupOptions(
                        List.of(new MemberToRemove(command.get("instance").asText()))))
                    .all().get();
                return null;
            case "create partitions":
                admin.createPartitions(Map.of(
                    topic, NewPartitions.increaseTo(command.get("count").asInt()))).all().get();
                return null;
            case "delete records":
                return admin.deleteRecords(Map.of(partition(command),
                    RecordsToDelete.beforeOffset(command.get("offset").asLong())))
                    .lowWatermarks().get(partition(command)).get().lowWatermark();
            case "alter configs":
                return alterConfigs(admin, command);
            case "log directories":
                return logDirectories(admin, command);
            default:
                throw new IllegalArgumentException(command.toString());
        }
    }

    static Object listGroups(Admin admin, JsonNode command) throws Exception {
        Set<GroupState> states = new HashSet<>();
        command.path("states").forEach(one -> states.add(GroupState.parse(one.asText())));
        Map<String, Object> facts = new TreeMap<>();
        ListGroupsOptions options = ListGroupsOptions.forConsumerGroups().inGroupStates(states);
        for (GroupListing one : admin.listGroups(options).all().get()) {
            facts.put(one.groupId(), List.of(
                one.protocol(), one.groupState().map(Object::toString).orElse(""),
                one.type().map(Object::toString).orElse("")));
        }
        return facts;
    }

    static Object facts(ConsumerGroupDescription group) {
        Map<String, Object> facts = new TreeMap<>();
        facts.put("state", group.groupState().toString());
        facts.put("assignor", group.partitionAssignor());
        facts.put("coordinator", group.coordinator().id());
        List<Object> members = new ArrayList<>();
        for (MemberDescription member : group.members()) {
            List<Integer> partitions = new ArrayList<>();
            member.assignment().topicPartitions().forEach(one -> partitions.add(one.partition()));
            members.add(List.of(
                member.clientId(), member.host(), member.groupInstanceId().orElse(""),
                member.consumerId(), partitions.stream().sorted().toList()));
        }
        facts.put("members", members);
        return facts;
    }

    static Object offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
        List<Object> facts = new ArrayList<>();
        offsets.forEach((partition, offset) -> facts.add(List.of(
            partition.topic(), partition.partition(), offset.offset(), offset.metadata(),
            offset.leaderEpoch().orElse(-1))));
        return facts;
    }

    static Map<TopicPartition, OffsetAndMetadata> wantedOffsets(JsonNode command) {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        command.get("offsets").forEach(one -> wanted.put(
            new TopicPartition(command.get("topic").asText(), one.get(0).asInt()),
            new OffsetAndMetadata(one.get(1).asLong(), one.get(2).asText())));
        return wanted;
    }

    static Object alterConfigs(Admin admin, JsonNode command) throws Exception {
        ConfigResource resource = resource(command);
        Collection<AlterConfigOp> changes = new ArrayList<>();
        command.get("changes").forEach(one -> changes.add(new AlterConfigOp(
            new ConfigEntry(one.get(1).asText(), one.get(2).asText()),
            AlterConfigOp.OpType.valueOf(one.get(0).asText()))));
        AlterConfigsOptions options =
            new AlterConfigsOptions().validateOnly(command.path("try").asBoolean());
        admin.incrementalAlterConfigs(Map.of(resource, changes), options).all().get();
        Map<String, Object> facts = new TreeMap<>();
        for (ConfigEntry entry
                : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            facts.put(entry.name(), List.of(
                String.valueOf(entry.value()), entry.source().toString()));
        }
        return facts;
    }

    static ConfigResource resource(JsonNode command) {
        return new ConfigResource(
            ConfigResource.Type.valueOf(command.get("kind").asText()),
            command.get("name").asText());
    }

    static Object logDirectories(Admin admin, JsonNode command) throws Exception {
        Map<String, Object> sizes = new TreeMap<>();
        for (LogDirDescription directory
                : admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values()) {
            directory.replicaInfos().forEach(
                (partition, replica) -> sizes.put(partition.toString(), replica.size()));
        }
        return sizes;
    }

    static TopicPartition partition(JsonNode command) {
        return new TopicPartition(
            command.get("topic").asText(), command.get("partition").asInt());
    }

    static Map<String, String> texts(JsonNode fields) {
        Map<String, String> texts = new HashMap<>();
        fields.fields().forEachRemaining(one -> texts.put(one.getKey(), one.getValue().asText()));
        return texts;
    }
}
