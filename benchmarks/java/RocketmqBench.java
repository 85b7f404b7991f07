// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.rocketmq.store.index.IndexFile;
import org.apache.rocketmq.store.index.IndexHeader;

/**
 * Times RocketMQ's own IndexFile on keys and files that the Python side made: warms up, then makes
 * one pass for each line of standard input and answers with the nanoseconds of the pass and a
 * checksum, which the Python side compares. So passes of both sides can alternate.
 *
 * Arguments: mode, warm-up passes, file (for puts the folder of the file), and a file of keys of 26
 * bytes. The strings of a pass are made before it, so that none has its hash yet.
 */
public final class RocketmqBench {
    private static final int HASH_SLOT_NUM = 5000000;
    private static final int INDEX_NUM = 20000000;
    private static final int KEY_BYTES = 26;
    private static final int MESSAGE_BYTES = 256;
    private static final long FIRST_STORE_TIMESTAMP = 1700000000000L;

    private interface Pass {
        long run() throws Exception;
    }

    /** Nanoseconds that the last pass measured, leaving preparation and checksum out. */
    private static long timed;

    public static void main(String[] args) throws Exception {
        int warmups = Integer.parseInt(args[1]);
        Pass pass = switch (args[0]) {
            case "index-put" -> put(new File(args[2]), bytes(args[3]));
            case "index-select" -> select(args[2], bytes(args[3]));
            case "index-open" -> () -> open(args[2]);
            default -> throw new IllegalArgumentException(args[0]);
        };
        for (int i = 0; i < warmups; i++) {
            pass.run();
        }
        System.out.println("ready");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) {
            long checksum = pass.run();
            System.out.println(timed + " " + checksum);
        }
        System.exit(0);
    }

    private static byte[] bytes(String path) throws Exception {
        return Files.readAllBytes(new File(path).toPath());
    }

    private static String[] strings(byte[] keys) {
        String[] made = new String[keys.length / KEY_BYTES];
        for (int i = 0; i < made.length; i++) {
            made[i] = new String(keys, i * KEY_BYTES, KEY_BYTES, StandardCharsets.ISO_8859_1);
        }
        return made;
    }

    private static IndexFile file(String path) throws Exception {
        return new IndexFile(path, HASH_SLOT_NUM, INDEX_NUM, 0, 0);
    }

    private static int indexCount(IndexFile file) throws Exception {
        Field field = IndexFile.class.getDeclaredField("indexHeader");
        field.setAccessible(true);
        return ((IndexHeader) field.get(file)).getIndexCount();
    }

    /** Puts all keys into a new file; the checksum of what lies before its free entries. */
    private static Pass put(File folder, byte[] keys) {
        String path = new File(folder, "20231114221320000").getPath();
        return () -> {
            String[] fresh = strings(keys);
            IndexFile file = file(path);
            long begin = System.nanoTime();
            for (int i = 0; i < fresh.length; i++) {
                file.putKey(fresh[i], (long) i * MESSAGE_BYTES, FIRST_STORE_TIMESTAMP + i);
            }
            timed = System.nanoTime() - begin;
            long end = 40L + 4L * HASH_SLOT_NUM + 20L * indexCount(file);
            CRC32 crc = new CRC32();
            try (RandomAccessFile written = new RandomAccessFile(path, "r")) {
                crc.update(written.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, end));
            }
            file.destroy(0);
            return crc.getValue();
        };
    }

    /** Looks each key up; the sum of the offsets. */
    private static Pass select(String path, byte[] keys) throws Exception {
        IndexFile file = file(path);
        file.load();
        return () -> {
            String[] fresh = strings(keys);
            List<Long> found = new ArrayList<>();
            long sum = 0;
            long begin = System.nanoTime();
            for (String key : fresh) {
                found.clear();
                file.selectPhyOffset(found, key, 64, 0, Long.MAX_VALUE);
                for (long offset : found) {
                    sum += offset;
                }
            }
            timed = System.nanoTime() - begin;
            return sum;
        };
    }

    /** Opens and loads the file; the index count. */
    private static long open(String path) throws Exception {
        long begin = System.nanoTime();
        IndexFile file = file(path);
        file.load();
        timed = System.nanoTime() - begin;
        int count = indexCount(file);
        file.shutdown();
        return count;
    }
}
