/*
 * Members of groups, the admin client and Kafka's own tools in one JVM, driven by lines of JSON: a
 * command a line on standard input, its answer a line on standard output ({"answer": ...} or
 * {"error": "..."}).  What happens to the members comes in between, as lists: [member, stamp in ns
 * of the monotonic clock, what, data].
 */

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.utils.Exit;

public class Groups {
    static final ObjectMapper JSON = new ObjectMapper();
    static final PrintStream OUTPUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    // What the tools print; they find it in place of the standard output.
    static final ByteArrayOutputStream PRINTED = new ByteArrayOutputStream();

    static final Map<String, Member> MEMBERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream printed = new PrintStream(PRINTED, true, StandardCharsets.UTF_8);
        System.setOut(printed);
        System.setErr(printed);
        Exit.setExitProcedure((code, message) -> {
            throw new ToolEnded(code);
        });
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("answer", handle(JSON.readTree(line)));
            } catch (ExecutionException error) {
                answer.put("error", String.valueOf(error.getCause()));
            } catch (Exception error) {
                answer.put("error", String.valueOf(error));
            }
            print(answer);
        }
        Runtime.getRuntime().halt(0);
    }

    static synchronized void print(Object line) throws Exception {
        OUTPUT.println(JSON.writeValueAsString(line));
        OUTPUT.flush();
    }

    static Object handle(JsonNode command) throws Exception {
        String name = command.path("member").asText();
        switch (command.get("do").asText()) {
            case "join":
                MEMBERS.put(name, new Member(name, command));
                return null;
            case "leave":
                MEMBERS.remove(name).leave();
                return null;
            case "commit and look":
                return Commits.seen(command);
            case "tool":
                return run(command.get("class").asText(), command.get("words"));
            default:
                return GroupAdmin.handle(command);
        }
    }

    /** Runs the main method of one of Kafka's tools to its end. */
    static Object run(String tool, JsonNode words) throws Exception {
        List<String> arguments = new ArrayList<>();
        words.forEach(word -> arguments.add(word.asText()));
        PRINTED.reset();
        int code = 0;
        try {
            Class.forName(tool).getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof ToolEnded)) {
                throw error;
            }
            code = ((ToolEnded) error.getCause()).code;
        }
        return List.of(code, PRINTED.toString(StandardCharsets.UTF_8));
    }

    /** In place of the end of the whole program. */
    static class ToolEnded extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int code;

        ToolEnded(int code) {
            super("exit " + code);
            this.code = code;
        }
    }
}
