package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.utils.Exit;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/** Kafka's command-line classes, run in this JVM: their exit becomes an exception. */
final class Tools {
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Exited() {
            super(null, null, false, false);
        }
    }

    private Tools() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("tool", Tools::run);
    }

    /** {main, args, stdin?} to {exit, out, err}. */
    private static ObjectNode run(ObjectNode item) throws Exception {
        Class<?> tool = Class.forName(item.get("main").asText());
        String[] args = Json.texts(item.get("args")).toArray(new String[0]);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        InputStream oldIn = System.in;
        PrintStream oldOut = System.out;
        PrintStream oldErr = System.err;
        // The first exit counts: some tools catch whatever is thrown and exit again, with 1.
        AtomicReference<Integer> status = new AtomicReference<>();
        Exit.Procedure exit = (code, message) -> {
            status.compareAndSet(null, code);
            throw new Exited();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        System.setIn(new ByteArrayInputStream(
            item.path("stdin").asText("").getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        try {
            call(tool, args);
            status.compareAndSet(null, 0);
        } finally {
            System.setIn(oldIn);
            System.setOut(oldOut);
            System.setErr(oldErr);
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
        }
        return Json.object().put("exit", status.get()).put("out", out.toString(StandardCharsets.UTF_8))
            .put("err", err.toString(StandardCharsets.UTF_8));
    }

    private static void call(Class<?> tool, String[] args) throws Exception {
        try {
            tool.getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            for (Throwable cause = e.getCause(); cause != null; cause = cause.getCause()) {
                if (cause instanceof Exited) {
                    return;
                }
            }
            throw e;
        }
    }
}
