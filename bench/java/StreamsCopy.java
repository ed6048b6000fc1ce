import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/** Kafka Streams, from one topic to another, exactly once. */
public final class StreamsCopy {
    private StreamsCopy() {}

    /** Arguments: servers, source, output, threads, milliseconds between commits. */
    public static void main(String[] given) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given[2]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, given[3]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, given[4]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        Class<?> bytes = Serdes.ByteArray().getClass();
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, bytes);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, bytes);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(given[1]).to(given[2]);
        new KafkaStreams(builder.build(), settings).start();
    }
}
