import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** What Kafka's own consumer says in a group, and how it assigns: printed as JSON, a line a case. */
public class Assignors {
    static final class Member {
        String id;
        String instance;
        List<String> topics;
        List<TopicPartition> owned = new ArrayList<>();
        int generation = -1;
        boolean isEager = false;
        String rack;

        Subscription subscription() {
            if (isEager) {
                ByteBuffer memory = generation < 0 ? null : remembered(owned, generation);
                Subscription said =
                    new Subscription(topics, memory, List.of(), generation, Optional.ofNullable(rack));
                if (instance != null) said.setGroupInstanceId(Optional.of(instance));
                return said;
            }
            ByteBuffer userData = ByteBuffer.allocate(4).putInt(generation);
            userData.flip();
            Subscription said =
                new Subscription(topics, userData, owned, generation, Optional.ofNullable(rack));
            if (instance != null) said.setGroupInstanceId(Optional.of(instance));
            return said;
        }
    }

    public static void main(String[] arguments) {
        bytes();
        Random random = new Random(20261121);
        for (int round = 0; round < 48; round++) {
            boolean isMixed = round % 4 == 3;
            Map<String, Integer> counts = new TreeMap<>();
            for (int topic = 0; topic < 1 + random.nextInt(3); topic++)
                counts.put("t" + topic, 1 + random.nextInt(7));
            List<Member> members = new ArrayList<>();
            for (int place = 0; place < 1 + random.nextInt(5); place++)
                members.add(member("m" + place, counts, isMixed, random));
            Map<String, Integer> wanted = wanted(counts, members);
            print("range", wanted, members, new RangeAssignor().assign(wanted, said(members)));
            print("roundrobin", wanted, members, new RoundRobinAssignor().assign(wanted, said(members)));
            cooperate(counts, members, isMixed, random);
        }
        for (int round = 0; round < 24; round++) stick(round % 3 == 2, random);
        for (int round = 0; round < 24; round++) near(round, new Random(881_000 + round));
    }

    static Member member(String id, Map<String, Integer> counts, boolean isMixed, Random random) {
        Member member = new Member();
        member.id = id;
        if (random.nextInt(4) == 0) member.instance = "i" + (9 - Integer.parseInt(id.substring(1)));
        member.topics = new ArrayList<>();
        for (String topic : counts.keySet())
            if (!isMixed || random.nextInt(3) > 0) member.topics.add(topic);
        if (member.topics.isEmpty()) member.topics.add("t0");
        return member;
    }

    /** Some rounds, with a member that goes or comes between them. */
    static void cooperate(Map<String, Integer> counts, List<Member> members, boolean isMixed, Random random) {
        for (int generation = 1; generation <= 4; generation++) {
            Map<String, List<TopicPartition>> given =
                new CooperativeStickyAssignor().assign(wanted(counts, members), said(members));
            print("cooperative-sticky", wanted(counts, members), members, given);
            for (Member member : members) {
                member.owned = new ArrayList<>(given.get(member.id));
                member.generation = generation;
            }
            if (generation == 2 && members.size() > 1 && random.nextBoolean())
                members.remove(random.nextInt(members.size()));
            else if (generation == 2)
                members.add(member("m" + (5 + random.nextInt(4)), counts, isMixed, random));
        }
    }

    /** Rounds of an eager group: one member goes after the second, and comes back with what it
        remembers after the third. */
    static void stick(boolean isMixed, Random random) {
        Map<String, Integer> counts = new TreeMap<>();
        for (int topic = 0; topic < 1 + random.nextInt(3); topic++)
            counts.put("t" + topic, 1 + random.nextInt(7));
        List<Member> members = new ArrayList<>();
        for (int place = 0; place < 2 + random.nextInt(4); place++) {
            members.add(member("m" + place, counts, isMixed, random));
            members.get(place).isEager = true;
        }
        Member gone = null;
        for (int generation = 1; generation <= 4; generation++) {
            Map<String, List<TopicPartition>> given =
                new StickyAssignor().assign(wanted(counts, members), said(members));
            print("sticky", wanted(counts, members), members, given);
            for (Member member : members) {
                member.owned = new ArrayList<>(given.get(member.id));
                member.generation = generation;
            }
            if (generation == 2) gone = members.remove(random.nextInt(members.size()));
            if (generation == 3) members.add(gone);
        }
    }

    /** Groups whose members and replicas have racks; one member goes and another comes. */
    static void near(int round, Random random) {
        Map<String, Integer> counts = new TreeMap<>();
        int alike = 1 + random.nextInt(7);
        for (int topic = 0; topic < 1 + random.nextInt(3); topic++)
            counts.put("t" + topic, random.nextBoolean() ? alike : 1 + random.nextInt(7));
        Map<String, List<PartitionInfo>> partitions = new TreeMap<>();
        Node[] nodes = new Node[5];
        for (int id = 0; id < nodes.length; id++)
            nodes[id] = new Node(id, "h", 1, id == 4 && round % 3 == 0 ? null : "r" + id % 3);
        int replicas = 1 + random.nextInt(3);
        counts.forEach((topic, count) -> {
            List<PartitionInfo> infos = new ArrayList<>();
            for (int index = 0; index < count; index++) {
                int first = random.nextInt(nodes.length);
                Node[] held = new Node[replicas];
                for (int place = 0; place < replicas; place++)
                    held[place] = nodes[(first + place) % nodes.length];
                infos.add(new PartitionInfo(topic, index, held[0], held, held));
            }
            partitions.put(topic, infos);
        });
        String[] names = {"range", "cooperative-sticky", "sticky"};
        for (String name : names) {
            List<Member> members = new ArrayList<>();
            for (int place = 0; place < 1 + random.nextInt(6); place++)
                members.add(nearMember(place, name, counts, round, random));
            for (int generation = 1; generation <= (name.equals("range") ? 1 : 4); generation++) {
                Map<String, List<PartitionInfo>> wanted = new TreeMap<>(partitions);
                wanted.keySet().retainAll(wanted(counts, members).keySet());
                Map<String, Subscription> said = said(members);
                Map<String, List<TopicPartition>> given = switch (name) {
                    case "range" -> new RangeAssignor().assignPartitions(wanted, said);
                    case "sticky" -> new StickyAssignor().assignPartitions(wanted, said);
                    default -> new CooperativeStickyAssignor().assignPartitions(wanted, said);
                };
                racks = racks(wanted, members);
                print(name, wanted(counts, members), members, given);
                racks = "";
                for (Member member : members) {
                    member.owned = new ArrayList<>(given.get(member.id));
                    member.generation = generation;
                }
                if (generation == 2 && members.size() > 1)
                    members.remove(random.nextInt(members.size()));
                if (generation == 3)
                    members.add(nearMember(6 + random.nextInt(3), name, counts, round, random));
            }
        }
    }

    static Member nearMember(int place, String name, Map<String, Integer> counts, int round, Random random) {
        boolean isMixed = name.equals("range") && round % 2 == 1;
        Member member = member("m" + place, counts, isMixed, random);
        member.isEager = name.equals("sticky");
        int rack = random.nextInt(5);
        member.rack = rack == 4 ? null : "r" + rack;
        return member;
    }

    /** Racks of partitions and of members, as a part of the case that is printed. */
    static String racks = "";

    static String racks(Map<String, List<PartitionInfo>> partitions, List<Member> members) {
        StringJoiner topics = new StringJoiner(",", "{", "}");
        partitions.forEach((topic, infos) -> {
            StringJoiner places = new StringJoiner(",", "[", "]");
            for (PartitionInfo info : infos) {
                StringJoiner held = new StringJoiner(",", "[", "]");
                Arrays.stream(info.replicas()).map(Node::rack).filter(Objects::nonNull).distinct().sorted()
                    .forEach(rack -> held.add('"' + rack + '"'));
                places.add(held.toString());
            }
            topics.add('"' + topic + "\":" + places);
        });
        StringJoiner told = new StringJoiner(",", "[", "]");
        for (Member member : members)
            told.add(member.rack == null ? "null" : '"' + member.rack + '"');
        return "\"racks\":" + topics + ",\"member_racks\":" + told + ",";
    }

    /** What members of an eager group remember, as they tell the leader. */
    static ByteBuffer remembered(List<TopicPartition> partitions, int generation) {
        StickyAssignor assignor = new StickyAssignor();
        assignor.onAssignment(new Assignment(partitions),
            new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        return assignor.subscriptionUserData(Set.of("a"));
    }

    /** A leader looks only at topics that somebody wants. */
    static Map<String, Integer> wanted(Map<String, Integer> counts, List<Member> members) {
        Map<String, Integer> wanted = new TreeMap<>(counts);
        wanted.keySet().removeIf(topic -> members.stream().noneMatch(one -> one.topics.contains(topic)));
        return wanted;
    }

    static Map<String, Subscription> said(List<Member> members) {
        Map<String, Subscription> said = new HashMap<>();
        for (Member member : members) said.put(member.id, member.subscription());
        return said;
    }

    static void print(String name, Map<String, Integer> counts, List<Member> members,
            Map<String, List<TopicPartition>> given) {
        StringJoiner heads = new StringJoiner(",", "[", "]");
        for (Member member : members) {
            StringJoiner topics = new StringJoiner("\",\"", "[\"", "\"]");
            member.topics.forEach(topics::add);
            String instance = member.instance == null ? "null" : '"' + member.instance + '"';
            heads.add("[\"" + member.id + "\"," + instance + "," + topics + "," + places(member.owned)
                + "," + member.generation + "]");
        }
        StringJoiner results = new StringJoiner(",", "{", "}");
        for (Member member : members)
            results.add('"' + member.id + "\":" + places(given.get(member.id)));
        StringJoiner sizes = new StringJoiner(",", "{", "}");
        counts.forEach((topic, count) -> sizes.add('"' + topic + "\":" + count));
        System.out.println("{" + racks + "\"assignor\":\"" + name + "\",\"counts\":" + sizes + ",\"members\":" + heads
            + ",\"given\":" + results + "}");
    }

    static String places(List<TopicPartition> partitions) {
        StringJoiner places = new StringJoiner(",", "[", "]");
        for (TopicPartition one : partitions)
            places.add("[\"" + one.topic() + "\"," + one.partition() + "]");
        return places.toString();
    }

    static void bytes() {
        List<TopicPartition> owned = List.of(new TopicPartition("b", 1), new TopicPartition("a", 3),
            new TopicPartition("b", 0));
        ByteBuffer userData = ByteBuffer.wrap(new byte[] {0, 0, 0, 7});
        for (short version = 0; version <= 3; version++) {
            Subscription said =
                new Subscription(List.of("b", "a"), userData.duplicate(), owned, 7, Optional.of("r1"));
            hex("subscription", version, ConsumerProtocol.serializeSubscription(said, version));
            Subscription bare = new Subscription(List.of("a"));
            hex("bare subscription", version, ConsumerProtocol.serializeSubscription(bare, version));
            Assignment given = new Assignment(owned);
            hex("assignment", version, ConsumerProtocol.serializeAssignment(given, version));
        }
        hex("sticky user data", -1, remembered(owned, 7));
        hex("sticky user data of nothing", -1, remembered(List.of(), 8));
        hex("newest subscription", -1, ConsumerProtocol.serializeSubscription(new Subscription(List.of("a"))));
        hex("newest assignment", -1, ConsumerProtocol.serializeAssignment(new Assignment(owned)));
    }

    static void hex(String what, int version, ByteBuffer data) {
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        System.out.println("{\"bytes\":\"" + what + "\",\"version\":" + version + ",\"hex\":\""
            + HexFormat.of().formatHex(bytes) + "\"}");
    }
}
