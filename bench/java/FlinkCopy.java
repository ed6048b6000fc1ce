import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Flink, from one topic to another, exactly once. */
public final class FlinkCopy {
    private FlinkCopy() {}

    /** Arguments: servers, source, output, parallelism, milliseconds between checkpoints. */
    public static void main(String[] given) throws Exception {
        int parallelism = Integer.parseInt(given[3]);
        StreamExecutionEnvironment flink =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        flink.enableCheckpointing(Long.parseLong(given[4]));
        flink.getConfig().enableObjectReuse();
        KafkaSource<byte[]> source =
                KafkaSource.<byte[]>builder()
                        .setBootstrapServers(given[0])
                        .setTopics(given[1])
                        .setGroupId(given[2])
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setValueOnlyDeserializer(new Bytes())
                        .build();
        KafkaSink<byte[]> sink =
                KafkaSink.<byte[]>builder()
                        .setBootstrapServers(given[0])
                        .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                        .setTransactionalIdPrefix(given[2])
                        .setProperty("transaction.timeout.ms", "600000")
                        .setRecordSerializer(
                                KafkaRecordSerializationSchema.<byte[]>builder()
                                        .setTopic(given[2])
                                        .setValueSerializationSchema(new Same())
                                        .build())
                        .build();
        flink.fromSource(source, WatermarkStrategy.noWatermarks(), "rows").sinkTo(sink);
        flink.execute();
    }

    private static final class Bytes extends AbstractDeserializationSchema<byte[]> {
        @Override
        public byte[] deserialize(byte[] value) {
            return value;
        }
    }

    private static final class Same implements SerializationSchema<byte[]> {
        @Override
        public byte[] serialize(byte[] value) {
            return value;
        }
    }
}
