package keylane.compat;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ClassicGroupState;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.UnknownMemberIdException;

/** The admin client on classic consumer groups and their offsets. */
final class AdminGroupChecks {
    private final Clients clients;
    private final Admin admin;

    AdminGroupChecks(Clients clients) {
        this.clients = clients;
        this.admin = clients.admin;
    }

    void register(Checks checks) {
        checks.area("admin groups");
        checks.add("list, by state, type and protocol", this::list);
        checks.add("describe a stable group", this::describe);
        checks.add("describe static members", this::describeStatic);
        checks.add("describe an empty group", this::describeEmpty);
        checks.add("describe an unknown group", this::describeUnknown);
        checks.add("describe as a classic group", this::describeClassic);
        checks.add("list offsets of one and of several groups", this::listOffsets);
        checks.add("alter offsets", this::alterOffsets);
        checks.add("alter offsets of an active group is refused", this::alterActive);
        checks.add("delete offsets", this::deleteOffsets);
        checks.add("delete groups", this::deleteGroups);
        checks.add("remove members", this::removeMembers);
        checks.add("offsets go with a deleted topic", this::deletedTopic);
    }

    /** A group without members that has committed offset 5 of partition 0. */
    private String emptyGroup(String topic) throws Exception {
        String group = Clients.unique("group");
        commit(group, topic, 5);
        return group;
    }

    private void commit(String group, String topic, long offset) {
        try (var consumer = clients.consumer(group)) {
            consumer.commitSync(
                Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(offset)));
        }
    }

    private GroupListing find(String group, ListGroupsOptions options) throws Exception {
        return Expect.get(admin.listGroups(options).all()).stream()
            .filter(listing -> listing.groupId().equals(group))
            .findFirst()
            .orElse(null);
    }

    private void list() throws Exception {
        String topic = clients.topic(1);
        String simple = emptyGroup(topic);
        String group = Clients.unique("group");
        try (var member = new Member(clients, group, List.of(topic))) {
            member.expectPartitions(1);
            GroupListing listing = find(group, new ListGroupsOptions());
            Expect.equal(GroupState.STABLE, listing.groupState().orElse(null), "state");
            Expect.equal(GroupType.CLASSIC, listing.type().orElse(null), "type");
            Expect.equal("consumer", listing.protocol(), "protocol");
            listing = find(simple, ListGroupsOptions.forConsumerGroups());
            Expect.equal(GroupState.EMPTY, listing.groupState().orElse(null), "state");
            Expect.equal("", listing.protocol(), "protocol of offsets without members");
            Expect.that(listing.isSimpleConsumerGroup(), "is simple");
            var stable = new ListGroupsOptions().inGroupStates(Set.of(GroupState.STABLE));
            Expect.that(find(group, stable) != null, "stable is among the stable");
            Expect.that(find(simple, stable) == null, "empty is not among the stable");
            var classic = new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC));
            Expect.that(find(group, classic) != null, "is among the classic");
            var consumer = new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER));
            Expect.that(find(group, consumer) == null, "is not among the new ones");
            var protocol = new ListGroupsOptions().withProtocolTypes(Set.of("consumer"));
            Expect.that(find(group, protocol) != null, "is among the consumers");
            Expect.that(find(simple, protocol) == null, "simple is not among the consumers");
        }
    }

    private void describe() throws Exception {
        String topic = clients.topic(3);
        String group = Clients.unique("group");
        String[] settings = {"client.id", "describe-me"};
        try (var first = new Member(clients, group, List.of(topic), settings);
            var second = new Member(clients, group, List.of(topic), settings)) {
            Member.expectShares(List.of(first, second), 1, 2);
            Expect.eventually("the group is stable", 20, () -> isStable(group));
            var all = Expect.get(admin.describeConsumerGroups(List.of(group)).all());
            var description = all.get(group);
            Expect.equal(GroupType.CLASSIC, description.type(), "type");
            Expect.equal("range", description.partitionAssignor(), "assignor");
            Expect.that(!description.isSimpleConsumerGroup(), "not simple");
            Expect.that(description.coordinator().port() > 0, "has a coordinator");
            Expect.equal(2, description.members().size(), "members");
            int total = 0;
            for (var member : description.members()) {
                Expect.equal("describe-me", member.clientId(), "client id");
                Expect.that(member.consumerId().startsWith("describe-me-"), "member id");
                Expect.that(member.host().startsWith("/"), "host " + member.host());
                total += member.assignment().topicPartitions().size();
            }
            Expect.equal(3, total, "assigned partitions");
        }
    }

    private boolean isStable(String group) {
        try {
            var all = Expect.get(admin.describeConsumerGroups(List.of(group)).all());
            return all.get(group).groupState() == GroupState.STABLE;
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    private void describeStatic() throws Exception {
        String topic = clients.topic(1);
        String group = Clients.unique("group");
        try (var member = new Member(clients, group, List.of(topic), "group.instance.id", "me")) {
            member.expectPartitions(1);
            var all = Expect.get(admin.describeConsumerGroups(List.of(group)).all());
            var found = all.get(group).members().iterator().next();
            Expect.equal("me", found.groupInstanceId().orElse(null), "instance id");
            Expect.that(found.consumerId().startsWith("me-"), "member id " + found.consumerId());
        }
    }

    private void describeEmpty() throws Exception {
        String group = emptyGroup(clients.topic(1));
        var description = Expect.get(admin.describeConsumerGroups(List.of(group)).all()).get(group);
        Expect.equal(GroupState.EMPTY, description.groupState(), "state");
        Expect.that(description.members().isEmpty(), "no members");
        Expect.that(description.isSimpleConsumerGroup(), "simple");
    }

    private void describeUnknown() throws Exception {
        var result = admin.describeConsumerGroups(List.of(Clients.unique("missing")));
        Expect.failure(GroupIdNotFoundException.class, result.all());
    }

    private void describeClassic() throws Exception {
        String topic = clients.topic(1);
        String group = Clients.unique("group");
        try (var member = new Member(clients, group, List.of(topic))) {
            member.expectPartitions(1);
            var all = Expect.get(admin.describeClassicGroups(List.of(group)).all());
            Expect.equal("consumer", all.get(group).protocol(), "protocol type");
            Expect.equal("range", all.get(group).protocolData(), "protocol");
            Expect.equal(ClassicGroupState.STABLE, all.get(group).state(), "state");
        }
    }

    private Map<TopicPartition, OffsetAndMetadata> offsets(String group) throws Exception {
        var result = admin.listConsumerGroupOffsets(group);
        return Expect.get(result.partitionsToOffsetAndMetadata());
    }

    private void listOffsets() throws Exception {
        String topic = clients.topic(2);
        TopicPartition first = new TopicPartition(topic, 0);
        TopicPartition second = new TopicPartition(topic, 1);
        String one = emptyGroup(topic);
        String two = emptyGroup(topic);
        commit(two, topic, 8);
        Expect.equal(Map.of(first, new OffsetAndMetadata(5)), offsets(one), "all of one group");
        var some = new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(first, second));
        var all = new ListConsumerGroupOffsetsSpec();
        var result = Expect.get(admin.listConsumerGroupOffsets(Map.of(one, some, two, all)).all());
        Expect.equal(5L, result.get(one).get(first).offset(), "first group");
        Expect.equal(null, result.get(one).get(second), "not committed");
        Expect.equal(8L, result.get(two).get(first).offset(), "second group");
        Expect.equal(Map.of(), offsets(Clients.unique("missing")), "unknown group");
    }

    private void alterOffsets() throws Exception {
        String topic = clients.topic(2);
        String group = emptyGroup(topic);
        Map<TopicPartition, OffsetAndMetadata> wanted = Map.of(
            new TopicPartition(topic, 0), new OffsetAndMetadata(2, "reset"),
            new TopicPartition(topic, 1), new OffsetAndMetadata(9));
        Expect.get(admin.alterConsumerGroupOffsets(group, wanted).all());
        Expect.equal(wanted, offsets(group), "offsets");
        String fresh = Clients.unique("group");
        Expect.get(admin.alterConsumerGroupOffsets(fresh, wanted).all());
        Expect.equal(wanted, offsets(fresh), "offsets of a group made by it");
    }

    private void alterActive() throws Exception {
        String topic = clients.topic(1);
        String group = Clients.unique("group");
        try (var member = new Member(clients, group, List.of(topic))) {
            member.expectPartitions(1);
            var wanted = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(2));
            Expect.failure(UnknownMemberIdException.class,
                admin.alterConsumerGroupOffsets(group, wanted).all());
        }
    }

    private void deleteOffsets() throws Exception {
        String topic = clients.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        String group = emptyGroup(topic);
        Expect.get(admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all());
        Expect.equal(Map.of(), offsets(group), "offsets");
        String active = emptyGroup(topic);
        try (var member = new Member(clients, active, List.of(topic))) {
            member.expectPartitions(1);
            Expect.failure(GroupSubscribedToTopicException.class,
                admin.deleteConsumerGroupOffsets(active, Set.of(partition)).all());
        }
        Expect.failure(GroupIdNotFoundException.class,
            admin.deleteConsumerGroupOffsets(Clients.unique("missing"), Set.of(partition)).all());
    }

    private void deleteGroups() throws Exception {
        String topic = clients.topic(1);
        String empty = emptyGroup(topic);
        String active = Clients.unique("group");
        String missing = Clients.unique("missing");
        try (var member = new Member(clients, active, List.of(topic))) {
            member.expectPartitions(1);
            var result = admin.deleteConsumerGroups(List.of(empty, active, missing));
            Expect.get(result.deletedGroups().get(empty));
            Expect.failure(GroupNotEmptyException.class, result.deletedGroups().get(active));
            Expect.failure(GroupIdNotFoundException.class, result.deletedGroups().get(missing));
        }
        Expect.equal(null, find(empty, new ListGroupsOptions()), "the deleted group in the list");
        Expect.equal(Map.of(), offsets(empty), "offsets of the deleted group");
        Expect.get(admin.deleteConsumerGroups(List.of(active)).all());
    }

    private void removeMembers() throws Exception {
        String topic = clients.topic(2);
        String group = Clients.unique("group");
        String[] one = {"group.instance.id", "one", "session.timeout.ms", "30000"};
        String[] two = {"group.instance.id", "two", "session.timeout.ms", "30000"};
        var first = new Member(clients, group, List.of(topic), one);
        var second = new Member(clients, group, List.of(topic), two);
        Member.expectShares(List.of(first, second), 1, 1);
        second.close();
        var byId = new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("two")));
        Expect.get(admin.removeMembersFromConsumerGroup(group, byId).all());
        first.expectPartitions(2);
        first.close();
        var unknown = new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("x")));
        Expect.failure(UnknownMemberIdException.class,
            admin.removeMembersFromConsumerGroup(group, unknown)
                .memberResult(new MemberToRemove("x")));
        var all = new RemoveMembersFromConsumerGroupOptions();
        Expect.get(admin.removeMembersFromConsumerGroup(group, all).all());
        var described = Expect.get(admin.describeConsumerGroups(List.of(group)).all()).get(group);
        Expect.equal(GroupState.EMPTY, described.groupState(), "state");
    }

    private void deletedTopic() throws Exception {
        String kept = clients.topic(1);
        String deleted = clients.topic(1);
        String group = emptyGroup(kept);
        commit(group, deleted, 3);
        Expect.equal(2, offsets(group).size(), "offsets before");
        Expect.get(admin.deleteTopics(List.of(deleted)).all());
        Expect.eventually("only the kept offset is left", 20, () -> {
            try {
                return offsets(group).keySet().equals(Set.of(new TopicPartition(kept, 0)));
            } catch (Exception error) {
                throw new AssertionError(error);
            }
        });
    }
}
