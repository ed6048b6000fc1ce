import java.nio.charset.StandardCharsets;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Rows of the same form as the other peers', through Flink's own exactly-once sink. */
public final class FlinkPeer {
    private static final String FILL = "abcdefghijklmnopqrstuvwxyz";

    private FlinkPeer() {}

    /** Arguments: servers, topic, rows, bytes of a value, milliseconds between checkpoints,
     * compression, parallelism. */
    public static void main(String[] given) throws Exception {
        String topic = given[1];
        int valueBytes = Integer.parseInt(given[3]);
        int parallelism = Integer.parseInt(given[6]);
        StreamExecutionEnvironment flink =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        flink.enableCheckpointing(Long.parseLong(given[4]));
        flink.getConfig().enableObjectReuse();
        DataGeneratorSource<byte[]> rows =
                new DataGeneratorSource<>(
                        new Value(valueBytes),
                        Long.parseLong(given[2]),
                        PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
        KafkaSink<byte[]> sink =
                KafkaSink.<byte[]>builder()
                        .setBootstrapServers(given[0])
                        .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                        .setTransactionalIdPrefix(topic)
                        .setRecordSerializer(new Plain(topic))
                        .setProperty("transaction.timeout.ms", "600000")
                        .setProperty("acks", "all")
                        .setProperty("linger.ms", "5")
                        .setProperty("batch.size", "262144")
                        .setProperty("buffer.memory", "268435456")
                        .setProperty("compression.type", given[5])
                        .build();
        flink.fromSource(rows, WatermarkStrategy.noWatermarks(), "rows").sinkTo(sink);
        flink.execute();
    }

    private static final class Value implements GeneratorFunction<Long, byte[]> {
        private final int length;

        Value(int length) {
            this.length = length;
        }

        @Override
        public byte[] map(Long number) {
            byte[] value = new byte[length];
            String text = number + "-" + Long.toHexString(number * 0x9E3779B97F4A7C15L) + "-";
            byte[] start = text.getBytes(StandardCharsets.US_ASCII);
            int filled = Math.min(start.length, length);
            System.arraycopy(start, 0, value, 0, filled);
            for (int at = filled; at < length; at++) {
                value[at] = (byte) FILL.charAt((at - filled) % FILL.length());
            }
            return value;
        }
    }

    private static final class Plain implements KafkaRecordSerializationSchema<byte[]> {
        private final String topic;

        Plain(String topic) {
            this.topic = topic;
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(
                byte[] value, KafkaSinkContext context, Long timestamp) {
            return new ProducerRecord<>(topic, value);
        }
    }
}
