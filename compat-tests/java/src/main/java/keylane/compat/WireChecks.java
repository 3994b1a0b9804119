package keylane.compat;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceDataCollection;
import org.apache.kafka.common.message.ProduceResponseData.PartitionProduceResponse;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.common.requests.InitProducerIdRequest;
import org.apache.kafka.common.requests.InitProducerIdResponse;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;

/** What well-behaved clients do not show: repeated, wrong and broken requests on a plain socket. */
final class WireChecks {
    /** The last version with topic names instead of ids. */
    private static final short PRODUCE_VERSION = 12;

    private final Clients clients;

    WireChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        checks.area("wire");
        checks.add("a repeated idempotent batch is stored once", this::repeated);
        checks.add("the last five batches are known as duplicates", this::repeatedLater);
        checks.add("a gap in the sequence is refused", this::sequenceGap);
        checks.add("an old producer epoch is refused", this::oldEpoch);
        checks.add("producer ids differ", this::producerIds);
        checks.add("a corrupt batch is refused", this::corrupt);
        checks.add("unknown partition and wrong acks", this::wrongRequests);
        checks.add("acks=0 has no answer", this::noAnswer);
        checks.add("pipelined requests are answered in order", this::pipelined);
        checks.add("ApiVersions of an unknown version", this::apiVersions);
        checks.add("every version of ApiVersions", this::everyApiVersions);
        checks.add("an unknown API ends the connection", this::unknownApi);
        checks.add("a frame that is too large ends the connection", this::hugeFrame);
    }

    private record Producer(long id, short epoch) {
    }

    private static Producer newProducer(Connection connection) throws Exception {
        var data = new InitProducerIdRequestData().setTransactionalId(null)
            .setTransactionTimeoutMs(60_000);
        var request = new InitProducerIdRequest.Builder(data).build((short) 4);
        var response = connection.ask(InitProducerIdResponse.class, request).data();
        Expect.equal(Errors.NONE, Errors.forCode(response.errorCode()), "InitProducerId");
        return new Producer(response.producerId(), response.producerEpoch());
    }

    private static SimpleRecord[] records(int count) {
        return IntStream.range(0, count)
            .mapToObj(number -> new SimpleRecord(System.currentTimeMillis(), null,
                ("value" + number).getBytes(StandardCharsets.UTF_8)))
            .toArray(SimpleRecord[]::new);
    }

    private static MemoryRecords batch(Producer producer, int sequence, int count) {
        return MemoryRecords.withIdempotentRecords(Compression.NONE, producer.id, producer.epoch,
            sequence, records(count));
    }

    private static ProduceRequest produce(String topic, int partition, int acks,
        MemoryRecords records) {
        var partitionData = new PartitionProduceData().setIndex(partition).setRecords(records);
        var topicData = new TopicProduceData().setName(topic).setTopicId(Uuid.ZERO_UUID)
            .setPartitionData(List.of(partitionData));
        var topics = new TopicProduceDataCollection(List.of(topicData).iterator());
        var data = new ProduceRequestData().setAcks((short) acks).setTimeoutMs(10_000)
            .setTopicData(topics);
        return new ProduceRequest(data, PRODUCE_VERSION);
    }

    private static PartitionProduceResponse send(Connection connection, String topic,
        MemoryRecords records) throws Exception {
        var response = connection.ask(ProduceResponse.class, produce(topic, 0, -1, records));
        return response.data().responses().iterator().next().partitionResponses().get(0);
    }

    private static void expect(Errors error, PartitionProduceResponse response) {
        Expect.equal(error, Errors.forCode(response.errorCode()), "error");
    }

    private void repeated() throws Exception {
        String topic = clients.topic(1);
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            Producer producer = newProducer(connection);
            MemoryRecords batch = batch(producer, 0, 3);
            for (int attempt = 0; attempt < 3; attempt++) {
                var response = send(connection, topic, batch);
                expect(Errors.NONE, response);
                Expect.equal(0L, response.baseOffset(), "base offset");
            }
            Expect.equal(3L, send(connection, topic, batch(producer, 3, 2)).baseOffset(), "next");
        }
        Expect.equal(5, clients.readAll(topic, 1, 5).size(), "records");
    }

    private void repeatedLater() throws Exception {
        String topic = clients.topic(1);
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            Producer producer = newProducer(connection);
            for (int sequence = 0; sequence < 8; sequence++) {
                expect(Errors.NONE, send(connection, topic, batch(producer, sequence, 1)));
            }
            for (int sequence = 3; sequence < 8; sequence++) {
                var response = send(connection, topic, batch(producer, sequence, 1));
                expect(Errors.NONE, response);
                Expect.equal((long) sequence, response.baseOffset(), "base offset");
            }
            // Older ones are no longer known in full, only that they are behind.
            var response = send(connection, topic, batch(producer, 0, 1));
            Errors error = Errors.forCode(response.errorCode());
            Expect.that(error == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
                || error == Errors.DUPLICATE_SEQUENCE_NUMBER, "error " + error);
        }
        Expect.equal(8, clients.readAll(topic, 1, 8).size(), "records");
    }

    private void sequenceGap() throws Exception {
        String topic = clients.topic(1);
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            Producer producer = newProducer(connection);
            expect(Errors.NONE, send(connection, topic, batch(producer, 0, 2)));
            expect(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                send(connection, topic, batch(producer, 3, 1)));
            expect(Errors.NONE, send(connection, topic, batch(producer, 2, 1)));
        }
    }

    private void oldEpoch() throws Exception {
        String topic = clients.topic(1);
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            Producer old = newProducer(connection);
            Producer bumped = new Producer(old.id, (short) (old.epoch + 1));
            expect(Errors.NONE, send(connection, topic, batch(old, 0, 1)));
            expect(Errors.NONE, send(connection, topic, batch(bumped, 0, 1)));
            expect(Errors.INVALID_PRODUCER_EPOCH, send(connection, topic, batch(old, 1, 1)));
        }
    }

    private void producerIds() throws Exception {
        try (var one = new Connection(Clients.leader(clients.bootstrap));
            var two = new Connection(Clients.leader(clients.bootstrap))) {
            Producer first = newProducer(one);
            Producer second = newProducer(two);
            Producer third = newProducer(one);
            Expect.that(first.id >= 0 && first.epoch == 0, "id and epoch");
            Expect.that(first.id != second.id && first.id != third.id && second.id != third.id,
                "three ids");
        }
    }

    private void corrupt() throws Exception {
        String topic = clients.topic(1);
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            MemoryRecords good = MemoryRecords.withRecords(Compression.NONE, records(2));
            ByteBuffer bytes = good.buffer().duplicate();
            int last = bytes.limit() - 2;
            bytes.put(last, (byte) (bytes.get(last) ^ 1));
            var response = send(connection, topic, MemoryRecords.readableRecords(bytes));
            expect(Errors.CORRUPT_MESSAGE, response);
            bytes.put(last, (byte) (bytes.get(last) ^ 1));
            var next = send(connection, topic, MemoryRecords.readableRecords(bytes));
            expect(Errors.NONE, next);
            Expect.equal(0L, next.baseOffset(), "base offset");
        }
    }

    private void wrongRequests() throws Exception {
        String topic = clients.topic(1);
        MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, records(1));
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            var unknown = connection.ask(ProduceResponse.class, produce(topic, 7, 1, records));
            expect(Errors.UNKNOWN_TOPIC_OR_PARTITION, unknown.data().responses().iterator().next()
                .partitionResponses().get(0));
            var acks = connection.ask(ProduceResponse.class, produce(topic, 0, 2, records));
            expect(Errors.INVALID_REQUIRED_ACKS, acks.data().responses().iterator().next()
                .partitionResponses().get(0));
        }
    }

    private void noAnswer() throws Exception {
        String topic = clients.topic(1);
        MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, records(1));
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            connection.send(produce(topic, 0, 0, records));
            // The next answer on the connection belongs to the next request.
            newProducer(connection);
        }
        Expect.equal(1, clients.readAll(topic, 1, 1).size(), "records");
    }

    private void pipelined() throws Exception {
        String topic = clients.topic(1);
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, records(1));
            for (int number = 0; number < 20; number++) {
                connection.send(produce(topic, 0, number % 2 == 0 ? -1 : 1, records));
            }
            for (int number = 0; number < 20; number++) {
                int correlationId = ByteBuffer.wrap(connection.frame()).getInt();
                Expect.equal(number + 1, correlationId, "correlation id");
            }
        }
        long previous = -1;
        for (var record : clients.readAll(topic, 1, 20)) {
            Expect.equal(previous + 1, record.offset(), "offset");
            previous = record.offset();
        }
    }

    /** A header of version 2, ending with its count of tagged fields. */
    private static byte[] header(int key, int version, int correlationId) {
        return ByteBuffer.allocate(11).putShort((short) key).putShort((short) version)
            .putInt(correlationId).putShort((short) -1).array();
    }

    private void apiVersions() throws Exception {
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            // Error 35 in the form of version 0, whatever was asked, with the versions of this API.
            connection.sendFrame(header(ApiKeys.API_VERSIONS.id, 99, 5));
            ByteBuffer answer = ByteBuffer.wrap(connection.frame());
            Expect.equal(5, answer.getInt(), "correlation id");
            Expect.equal(Errors.UNSUPPORTED_VERSION.code(), answer.getShort(), "error");
            Expect.equal(1, answer.getInt(), "entries");
            Expect.equal(ApiKeys.API_VERSIONS.id, answer.getShort(), "key");
            Expect.equal((short) 0, answer.getShort(), "lowest version");
            Expect.that(answer.getShort() >= 3, "highest version");
            // The connection goes on.
            newProducer(connection);
        }
    }

    private void everyApiVersions() throws Exception {
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            for (short version = 0; version <= 4; version++) {
                var data = new ApiVersionsRequestData().setClientSoftwareName("compat")
                    .setClientSoftwareVersion("1.0");
                var request = new ApiVersionsRequest(data, version);
                var response = connection.ask(ApiVersionsResponse.class, request).data();
                Expect.equal((short) 0, response.errorCode(), "error");
                for (ApiKeys key : List.of(ApiKeys.PRODUCE, ApiKeys.FETCH, ApiKeys.METADATA,
                    ApiKeys.JOIN_GROUP, ApiKeys.INIT_PRODUCER_ID)) {
                    Expect.that(response.apiKeys().find(key.id) != null, key + " is listed");
                }
            }
        }
    }

    private void unknownApi() throws Exception {
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            connection.sendFrame(header(9_999, 0, 1));
            Expect.that(connection.isEnded(), "the connection ends");
        }
        try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
            connection.sendFrame(header(ApiKeys.METADATA.id, 99, 1));
            Expect.that(connection.isEnded(), "the connection ends");
        }
    }

    private void hugeFrame() throws Exception {
        for (int length : new int[] {Integer.MAX_VALUE, -1}) {
            try (var connection = new Connection(Clients.leader(clients.bootstrap))) {
                connection.sendBytes(ByteBuffer.allocate(4).putInt(length).array());
                Expect.that(connection.isEnded(), "the connection ends");
            }
        }
    }
}
