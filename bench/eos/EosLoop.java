import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Poll, process, produce with the Java client. Reads a turn a line and answers each with a line; see
 * bench/eos/turns.py for both.
 *
 * <p>What KIP-609 proposes is not in any Kafka. Its registration is the client's own, called early
 * for all partitions instead of by each first record: TransactionManager.maybeAddPartition.
 */
public final class EosLoop {
  public static void main(String[] arguments) throws Exception {
    Scanner turns = new Scanner(System.in, StandardCharsets.UTF_8);
    while (turns.hasNextLine()) {
      Map<String, String> turn = new HashMap<>();
      for (String word : turns.nextLine().split(" ")) {
        int at = word.indexOf('=');
        turn.put(word.substring(0, at), word.substring(at + 1));
      }
      System.out.println(new EosLoop(turn).play());
      System.out.flush();
    }
  }

  private static final int FEWEST = 3;

  private final Map<String, String> turn;
  private final List<TopicPartition> output = new ArrayList<>();
  private int transactions;
  private long records;

  private EosLoop(Map<String, String> turn) {
    this.turn = turn;
    for (int number = 0; number < Integer.parseInt(turn.get("partitions")); number++) {
      output.add(new TopicPartition(turn.get("output"), number));
    }
  }

  private String play() throws Exception {
    long interval = (long) (Double.parseDouble(turn.get("interval_ms")) * 1e6);
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(reading());
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(writing())) {
      consumer.subscribe(List.of(turn.get("input")));
      producer.initTransactions();
      ConsumerRecords<byte[], byte[]> polled = ConsumerRecords.empty();
      while (polled.isEmpty()) {
        polled = consumer.poll(Duration.ofMillis(100));
      }
      long begun = System.nanoTime();
      long stop = begun + (long) (Double.parseDouble(turn.get("seconds")) * 1e9);
      while (System.nanoTime() < stop || transactions < FEWEST) {
        transaction(consumer, producer, polled, System.nanoTime() + interval);
        polled = consumer.poll(Duration.ofMillis(100));
      }
      double seconds = (System.nanoTime() - begun) / 1e9;
      return String.format(
          Locale.ROOT,
          "records=%d seconds=%.3f transactions=%d",
          records,
          seconds,
          transactions);
    }
  }

  private void transaction(
      KafkaConsumer<byte[], byte[]> consumer,
      KafkaProducer<byte[], byte[]> producer,
      ConsumerRecords<byte[], byte[]> polled,
      long until)
      throws Exception {
    if (polled.isEmpty()) {
      return;
    }
    producer.beginTransaction();
    if (turn.get("declared").equals("true")) {
      declare(producer);
    }
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    while (true) {
      for (ConsumerRecord<byte[], byte[]> read : polled) {
        TopicPartition to = output.get((int) (records++ % output.size()));
        producer.send(
            new ProducerRecord<>(to.topic(), to.partition(), read.key(), processed(read.value())));
        offsets.put(
            new TopicPartition(read.topic(), read.partition()),
            new OffsetAndMetadata(read.offset() + 1));
      }
      long left = until - System.nanoTime();
      if (left <= 0) {
        break;
      }
      polled = consumer.poll(Duration.ofNanos(Math.min(left, 100_000_000L)));
    }
    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
    producer.commitTransaction();
    transactions++;
  }

  private static byte[] processed(byte[] value) {
    byte[] processed = value.clone();
    processed[processed.length - 1] = 'p';
    return processed;
  }

  private void declare(KafkaProducer<byte[], byte[]> producer) throws Exception {
    Object manager = field(producer, "transactionManager");
    for (TopicPartition each : output) {
      manager.getClass().getMethod("maybeAddPartition", TopicPartition.class).invoke(manager, each);
    }
    Object sender = field(producer, "sender");
    sender.getClass().getMethod("wakeup").invoke(sender);
  }

  private static Object field(Object of, String name) throws Exception {
    Field field = of.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  private Properties reading() {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", turn.get("bootstrap"));
    properties.put("group.id", turn.get("group"));
    properties.put("auto.offset.reset", "earliest");
    properties.put("enable.auto.commit", "false");
    properties.put("isolation.level", "read_committed");
    properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
    properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
    return properties;
  }

  private Properties writing() {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", turn.get("bootstrap"));
    properties.put("transactional.id", turn.get("group"));
    properties.put("linger.ms", "5");
    properties.put("batch.size", "262144");
    // A batch for each of 200 partitions, and some on their way.
    properties.put("buffer.memory", "134217728");
    properties.put("key.serializer", ByteArraySerializer.class.getName());
    properties.put("value.serializer", ByteArraySerializer.class.getName());
    return properties;
  }
}
