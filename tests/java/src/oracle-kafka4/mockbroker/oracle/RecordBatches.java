package mockbroker.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

import java.nio.ByteBuffer;
import java.util.Map;

/** Record batches built and read by Kafka's MemoryRecords. */
public final class RecordBatches {
    private static final int WRITE_LIMIT_BYTES = 64 << 20;

    private RecordBatches() {
    }

    public static void register(Map<String, Pipe.Op> ops) {
        ops.put("records.build", RecordBatches::build);
        ops.put("records.marker", RecordBatches::marker);
        ops.put("records.read", RecordBatches::read);
    }

    /** A batch header's fields and its records to {hex}. */
    private static ObjectNode build(ObjectNode item) throws Exception {
        ByteBufferOutputStream out = new ByteBufferOutputStream(1024);
        Compression compression = Compression.of(item.path("compression").asText("none")).build();
        TimestampType stamps = item.path("logAppendTime").isNumber()
            ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        try (MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            out, RecordBatch.CURRENT_MAGIC_VALUE, compression, stamps,
            item.path("baseOffset").asLong(0),
            item.path("logAppendTime").asLong(-1), item.path("producerId").asLong(-1),
            (short) item.path("producerEpoch").asInt(-1), item.path("baseSequence").asInt(-1),
            item.path("transactional").asBoolean(false), false,
            item.path("leaderEpoch").asInt(-1), WRITE_LIMIT_BYTES)) {
            for (JsonNode record : item.withArray("/records")) {
                builder.appendWithOffset(record.get("offset").asLong(),
                    record.get("timestamp").asLong(), bytes(record.get("key")),
                    bytes(record.get("value")), headers(record));
            }
            return Pipe.JSON.objectNode().put("hex", hex(builder.build().buffer()));
        }
    }

    /** {baseOffset, timestamp, leaderEpoch, producerId, producerEpoch, commit, coordinatorEpoch}. */
    private static ObjectNode marker(ObjectNode item) {
        ControlRecordType type =
            item.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(
            item.get("baseOffset").asLong(), item.get("timestamp").asLong(),
            item.get("leaderEpoch").asInt(), item.get("producerId").asLong(),
            (short) item.get("producerEpoch").asInt(),
            new EndTransactionMarker(type, item.get("coordinatorEpoch").asInt()));
        return Pipe.JSON.objectNode().put("hex", hex(records.buffer()));
    }

    /** {hex} to {validBytes, batches: [{…, records: [{…}]}]}. */
    private static ObjectNode read(ObjectNode item) {
        ByteBuffer buffer = ByteBuffer.wrap(Oracle.unhex(item.get("hex").asText()));
        MemoryRecords records = MemoryRecords.readableRecords(buffer);
        ObjectNode result = Pipe.JSON.objectNode();
        result.put("validBytes", records.validBytes());
        ArrayNode batches = result.putArray("batches");
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            describe(batch, batches.addObject());
        }
        return result;
    }

    private static void describe(MutableRecordBatch batch, ObjectNode node) {
        node.put("magic", batch.magic()).put("sizeInBytes", batch.sizeInBytes())
            .put("baseOffset", batch.baseOffset()).put("lastOffset", batch.lastOffset())
            .put("compression", batch.compressionType().name)
            .put("timestampType", batch.timestampType().name)
            .put("maxTimestamp", batch.maxTimestamp());
        if (batch instanceof DefaultRecordBatch v2) {
            node.put("checksum", v2.checksum()).put("baseTimestamp", v2.baseTimestamp())
                .put("leaderEpoch", v2.partitionLeaderEpoch()).put("count", v2.countOrNull())
                .put("producerId", v2.producerId()).put("producerEpoch", v2.producerEpoch())
                .put("baseSequence", v2.baseSequence()).put("lastSequence", v2.lastSequence())
                .put("transactional", v2.isTransactional()).put("control", v2.isControlBatch());
        }
        ArrayNode records = node.putArray("records");
        for (Record record : batch) {
            describe(record, batch.isControlBatch(), records.addObject());
        }
    }

    private static void describe(Record record, boolean control, ObjectNode node) {
        node.put("offset", record.offset()).put("timestamp", record.timestamp());
        node.put("key", record.hasKey() ? hex(record.key()) : null);
        node.put("value", record.hasValue() ? hex(record.value()) : null);
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            byte[] value = header.value();
            headers.addArray().add(header.key()).add(value == null ? null : Oracle.hex(value));
        }
        if (control) {
            ControlRecordType type = ControlRecordType.parse(record.key());
            node.put("control", type.name());
            if (type == ControlRecordType.COMMIT || type == ControlRecordType.ABORT) {
                node.put("coordinatorEpoch",
                    EndTransactionMarker.deserialize(record).coordinatorEpoch());
            }
        }
    }

    private static byte[] bytes(JsonNode hex) {
        return hex == null || hex.isNull() ? null : Oracle.unhex(hex.asText());
    }

    private static Header[] headers(JsonNode record) {
        JsonNode pairs = record.path("headers");
        Header[] headers = new Header[pairs.size()];
        for (int i = 0; i < headers.length; i++) {
            headers[i] = new RecordHeader(pairs.get(i).get(0).asText(), bytes(pairs.get(i).get(1)));
        }
        return headers;
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return Oracle.hex(bytes);
    }
}
