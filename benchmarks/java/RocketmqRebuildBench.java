// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.net.InetSocketAddress;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.DispatchRequest;
import org.apache.rocketmq.store.MessageArrivingListener;
import org.apache.rocketmq.store.StoreCheckpoint;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.index.IndexFile;
import org.apache.rocketmq.store.index.IndexService;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * Makes the commit log of a store through DefaultMessageStore, or times how RocketMQ itself makes
 * the index of one new: CommitLog.checkMessageAndReturnSize and IndexService.buildIndex for each
 * record of the log, as a recovery does it for the index, and then IndexFile.flush.
 *
 * Arguments: "write", the store, how many messages; or "rebuild", warm-up passes, the store, and a
 * folder for the new index, which is emptied before each pass.
 */
public final class RocketmqRebuildBench {
    private static final int LOG_FILE_BYTES = 64 << 20;
    private static final int BODY_BYTES = 200;
    private static final long WAIT_MS = 60000;

    private static long timed;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            write(args[1], Integer.parseInt(args[2]));
            System.exit(0);
        }
        File out = new File(args[3]);
        int warmups = Integer.parseInt(args[1]);
        for (int i = 0; i < warmups; i++) {
            rebuild(args[2], out);
        }
        System.out.println("ready");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        while (requests.readLine() != null) {
            long checksum = rebuild(args[2], out);
            System.out.println(timed + " " + checksum);
        }
        System.exit(0);
    }

    private static DefaultMessageStore store(String path) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(path);
        config.setStorePathCommitLog(path + "/commitlog");
        config.setMappedFileSizeCommitLog(LOG_FILE_BYTES);
        config.setHaListenPort(0);
        config.setDuplicationEnable(true);  // and so no port is opened
        BrokerConfig broker = new BrokerConfig();
        MessageArrivingListener listener = (topic, queue, offset, tags, time, bits, map) -> { };
        return new DefaultMessageStore(
            config, new BrokerStatsManager(broker), listener, broker, new ConcurrentHashMap<>());
    }

    /** Puts messages with a unique key, two keys and tags, and shuts the store down. */
    private static void write(String path, int count) throws Exception {
        DefaultMessageStore store = store(path);
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        store.start();
        InetSocketAddress host = new InetSocketAddress("127.0.0.1", 10911);
        byte[] body = new byte[BODY_BYTES];
        for (int i = 0; i < count; i++) {
            Arrays.fill(body, (byte) i);
            MessageExtBrokerInner message = new MessageExtBrokerInner();
            MessageAccessor.setProperties(message, new HashMap<>());
            message.setTopic("TopicTest");
            message.setBody(body);
            message.setQueueId(i % 4);
            message.setBornTimestamp(System.currentTimeMillis());
            message.setBornHost(host);
            message.setStoreHost(host);
            message.setKeys("order-" + i + " user-" + i % 5000);
            message.setTags("Tag" + i % 7);
            MessageAccessor.putProperty(message, "UNIQ_KEY", String.format("%032X", i * 2654435761L));
            message.setPropertiesString(
                MessageDecoder.messageProperties2String(message.getProperties()));
            if (!store.putMessage(message).isOk()) {
                throw new IllegalStateException("message " + i + " was not put");
            }
        }
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (store.dispatchBehindBytes() > 0 && System.currentTimeMillis() < deadline) {
            Thread.sleep(20);
        }
        store.shutdown();
    }

    private static void empty(File folder) {
        File[] found = folder.listFiles();
        for (File file : found == null ? new File[0] : found) {
            empty(file);
            file.delete();
        }
    }

    /** Makes the index new; the checksum of what lies before the free entries of each file. */
    private static long rebuild(String path, File out) throws Exception {
        empty(out);
        out.mkdirs();
        DefaultMessageStore store = store(out.getPath());
        set(store, "storeCheckpoint", new StoreCheckpoint(out + "/checkpoint"));
        IndexService service = new IndexService(store);
        CommitLog log = store.getCommitLog();
        File[] files = new File(path, "commitlog").listFiles();
        Arrays.sort(files);
        long begin = System.nanoTime();
        for (File file : files) {
            if (!redo(file, log, service)) {
                break;
            }
        }
        List<IndexFile> made = indexFiles(service);
        for (IndexFile file : made) {
            file.flush();
        }
        timed = System.nanoTime() - begin;
        CRC32 crc = new CRC32();
        for (IndexFile file : made) {
            sum(new File(file.getFileName()), crc);
            file.destroy(0);
        }
        return crc.getValue();
    }

    /** Dispatches the records of one file; whether it ended at its blank end. */
    private static boolean redo(File file, CommitLog log, IndexService service) throws Exception {
        try (RandomAccessFile opened = new RandomAccessFile(file, "r")) {
            MappedByteBuffer buffer =
                opened.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, opened.length());
            int position = 0;
            while (true) {
                buffer.position(position);
                DispatchRequest request = log.checkMessageAndReturnSize(buffer, true, false);
                if (!request.isSuccess()) {
                    return false;
                }
                if (request.getMsgSize() == 0) {
                    return true;
                }
                service.buildIndex(request);
                position += request.getMsgSize();
            }
        }
    }

    private static void sum(File file, CRC32 crc) throws Exception {
        try (RandomAccessFile written = new RandomAccessFile(file, "r")) {
            written.seek(36);
            long end = 40L + 4L * 5000000 + 20L * written.readInt();
            crc.update(written.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, end));
        }
    }

    private static void set(Object object, String name, Object value) throws Exception {
        java.lang.reflect.Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        field.set(object, value);
    }

    @SuppressWarnings("unchecked")
    private static List<IndexFile> indexFiles(IndexService service) throws Exception {
        java.lang.reflect.Field field = IndexService.class.getDeclaredField("indexFileList");
        field.setAccessible(true);
        return (List<IndexFile>) field.get(service);
    }
}
