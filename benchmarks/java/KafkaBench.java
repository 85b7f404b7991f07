// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Times Kafka's own classes on files that the Python side made: warms up, then makes one pass for
 * each line of standard input and answers with the nanoseconds of the pass and a checksum of its
 * answers, which the Python side compares. So passes of both sides can alternate.
 *
 * Arguments: mode, warm-up passes, file or directory, and for lookups and reads the file of
 * targets, for appends the log whose batches are appended.
 */
public final class KafkaBench {
    private static final int INDEX_SIZE = 10485760;

    private interface Pass {
        long run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int warmups = Integer.parseInt(args[1]);
        File file = new File(args[2]);
        Pass pass = switch (args[0]) {
            case "offset-lookup" -> offsetLookup(file, longs(args[3]));
            case "time-lookup" -> timeLookup(file, longs(args[3]));
            case "recover" -> () -> recover(file);
            case "iterate" -> () -> iterate(file);
            case "segment-read" -> segmentRead(file, longs(args[3]));
            case "segment-time" -> segmentTime(file, longs(args[3]));
            case "segment-append" -> segmentAppend(file, new File(args[3]));
            case "open-log" -> openLog(file);
            default -> throw new IllegalArgumentException(args[0]);
        };
        for (int i = 0; i < warmups; i++) {
            pass.run();
        }
        System.out.println("ready");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) {
            timed = 0;
            long begin = System.nanoTime();
            long checksum = pass.run();
            long all = System.nanoTime() - begin;
            System.out.println((timed == 0 ? all : timed) + " " + checksum);
        }
    }

    /** Nanoseconds a pass measured itself, leaving its preparation out; 0 if it did not. */
    private static long timed;

    private static long[] longs(String path) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(Files.readAllBytes(new File(path).toPath()));
        long[] values = new long[buffer.remaining() / 8];
        buffer.asLongBuffer().get(values);
        return values;
    }

    private static Pass offsetLookup(File file, long[] targets) throws Exception {
        OffsetIndex index = new OffsetIndex(file, 0, INDEX_SIZE, false);
        return () -> {
            long sum = 0;
            for (long target : targets) {
                sum += index.lookup(target).position();
            }
            return sum;
        };
    }

    private static Pass timeLookup(File file, long[] targets) throws Exception {
        TimeIndex index = new TimeIndex(file, 0, INDEX_SIZE, false);
        return () -> {
            long sum = 0;
            for (long target : targets) {
                sum += index.lookup(target).offset();
            }
            return sum;
        };
    }

    private static LogConfig config() {
        return new LogConfig(
            Map.of("index.interval.bytes", "4096", "segment.index.bytes", "" + INDEX_SIZE));
    }

    private static LogSegment segment(File directory, boolean alreadyExists) throws Exception {
        return LogSegment.open(directory, 0, config(), Time.SYSTEM, alreadyExists, 0, false, "");
    }

    /** Recovers the segment 0 of a directory; only the recovery is timed, as opening is lazy. */
    private static long recover(File directory) throws Exception {
        TopicPartition partition = new TopicPartition("bench", 0);
        LogSegment segment = segment(directory, true);
        ProducerStateManager producers = new ProducerStateManager(
            partition, directory, 900000, new ProducerStateManagerConfig(86400000, false),
            Time.SYSTEM);
        long begin = System.nanoTime();
        int truncated = segment.recover(producers, null);
        timed = System.nanoTime() - begin;
        segment.close();
        return truncated;
    }

    private static long iterate(File file) throws Exception {
        long sum = 0;
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                for (Record record : batch) {
                    sum += record.valueSize();
                }
            }
        }
        return sum;
    }
    /** Finds where each read begins, at most one byte of it; the sum of the positions. */
    private static Pass segmentRead(File directory, long[] targets) throws Exception {
        LogSegment segment = segment(directory, true);
        return () -> {
            long sum = 0;
            for (long target : targets) {
                FetchDataInfo found = segment.read(target, 1);
                sum += found == null ? -1 : found.fetchOffsetMetadata.relativePositionInSegment;
            }
            return sum;
        };
    }

    /** Finds the first record at or after each timestamp; the sum of the offsets. */
    private static Pass segmentTime(File directory, long[] targets) throws Exception {
        LogSegment segment = segment(directory, true);
        return () -> {
            long sum = 0;
            for (long target : targets) {
                sum += segment.findOffsetByTimestamp(target, 0)
                    .map(found -> found.offset).orElse(-1L);
            }
            return sum;
        };
    }

    /** Appends each batch of a log to a new segment; only the appends are timed. */
    private static Pass segmentAppend(File directory, File log) throws Exception {
        ByteBuffer all = ByteBuffer.wrap(Files.readAllBytes(log.toPath()));
        List<MemoryRecords> batches = new ArrayList<>();
        List<Long> lastOffsets = new ArrayList<>();
        for (RecordBatch batch : MemoryRecords.readableRecords(all.duplicate()).batches()) {
            batches.add(MemoryRecords.readableRecords(all.slice(0, batch.sizeInBytes())));
            lastOffsets.add(batch.lastOffset());
            all = all.slice(batch.sizeInBytes(), all.remaining() - batch.sizeInBytes());
        }
        return () -> {
            LogSegment segment = segment(directory, false);
            long begin = System.nanoTime();
            for (int i = 0; i < batches.size(); i++) {
                segment.append(lastOffsets.get(i), batches.get(i));
            }
            timed = System.nanoTime() - begin;
            long checksum =
                segment.size() + segment.offsetIndex().entries() + segment.timeIndex().entries();
            segment.deleteIfExists();
            return checksum;
        };
    }

    /** Opens a log that was closed cleanly; only that is timed. Its segments, and its end. */
    private static Pass openLog(File directory) {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        return () -> {
            long begin = System.nanoTime();
            UnifiedLog log = UnifiedLog.create(
                directory, config(), 0, 0, scheduler, new BrokerTopicStats(), Time.SYSTEM, 900000,
                new ProducerStateManagerConfig(86400000, false), 600000,
                new LogDirFailureChannel(1), true, Optional.empty());
            timed = System.nanoTime() - begin;
            long checksum = log.numberOfSegments() + log.logEndOffset();
            log.close();
            return checksum;
        };
    }
}
