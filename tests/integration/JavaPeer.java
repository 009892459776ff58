import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Apache's own client, steered by lines on standard input; see peers.py.
 *
 * <pre>
 *   write TOPIC CODEC COUNT          and COUNT lines: timestamp, key, value, header names and values
 *   commit GROUP TOPIC OFFSET NOTE
 *   committed GROUP TOPIC
 * </pre>
 *
 * All of it concerns partition 0. Bytes are "x" and hexadecimal digits, null is "-". Each command
 * is answered by one line that begins with "=".
 */
public class JavaPeer {
    private static final HexFormat HEX = HexFormat.of();
    private static final BufferedReader INPUT =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));

    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        for (String line; (line = INPUT.readLine()) != null; ) {
            String[] words = line.split(" ");
            String answer = switch (words[0]) {
                case "write" -> write(words[1], words[2], Integer.parseInt(words[3]));
                case "commit" -> commit(words[1], words[2], Long.parseLong(words[3]), words[4]);
                case "committed" -> committed(words[1], words[2]);
                default -> throw new IllegalArgumentException(line);
            };
            System.out.println("= " + answer);
        }
    }

    private static String write(String topic, String codec, int count) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("compression.type", codec);
        try (var producer =
                new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < count; number++) {
                String[] words = INPUT.readLine().split(" ");
                List<Header> headers = new ArrayList<>();
                for (int at = 3; at < words.length; at += 2) {
                    String name = new String(bytes(words[at]), StandardCharsets.UTF_8);
                    headers.add(new RecordHeader(name, bytes(words[at + 1])));
                }
                long timestamp = Long.parseLong(words[0]);
                producer.send(new ProducerRecord<>(
                    topic, 0, timestamp, bytes(words[1]), bytes(words[2]), headers));
            }
        }
        return String.valueOf(count);
    }

    private static String commit(String group, String topic, long offset, String note) {
        try (var consumer = consumer(group)) {
            var at = new OffsetAndMetadata(offset, note);
            consumer.commitSync(Map.of(new TopicPartition(topic, 0), at));
        }
        return String.valueOf(offset);
    }

    private static String committed(String group, String topic) {
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(group)) {
            var found = consumer.committed(Set.of(partition), Duration.ofSeconds(60)).get(partition);
            return found == null ? "-1" : String.valueOf(found.offset());
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        config.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static byte[] bytes(String word) {
        return word.equals("-") ? null : HEX.parseHex(word, 1, word.length());
    }
}
