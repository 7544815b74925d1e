import { describe, expect, test } from "vitest";
import { until } from "../../harness/until.ts";
import { toClient } from "./short-form.ts";
import { ollamaStage } from "./stage.ts";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

/** Times of the wire, a status that is held back among them, are a fifth of what they are. */
const timeScale = "0.2";
const on = staged({ ...everyRuntime, "slow Ollama": () => ollamaStage({}, { TRUNKLINE_TIME_SCALE: timeScale }) });
const every = Object.keys(everyRuntime) as RuntimeName[];

const normal = `
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`;

describe("quirk 20: runtimes that queue, load or read the prompt say nothing, and so the client is told", () => {
  test("the status waits as long as it may still be another; then comments come, and the answer after them", async () => {
    const gate = Promise.withResolvers<void>();
    on("slow Ollama").play(async (chat) => {
      await gate.promise;
      chat.say("Hello");
      chat.done();
    });
    const stream = await on("slow Ollama").endpoint.chat({ model: "m", says: "Hi", stream: true });
    expect(stream.status).toBe(200);
    gate.resolve();
    const [, comments = "", rest] = /^((?:: [a-z0-9 ]+\n\n)+)(.*)$/s.exec(await stream.text()) ?? [];
    expect(comments).toMatch(/^: (loading|prefill)\n\n/);
    expect(toClient(rest ?? "")).toBe(normal);
  });

  test("one that waits its turn, since Ollama tells nobody of its own queue, is told its place", async () => {
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    on("slow Ollama").play(async (chat) => {
      asked += 1;
      await gate.promise;
      chat.say("Hello");
      chat.done();
    });
    const [first, second] = await Promise.all(
      [0, 1].map(() => on("slow Ollama").endpoint.chat({ model: "m", says: "Hi", stream: true })),
    );
    expect(asked).toBe(1);
    gate.resolve();
    const texts = [await first?.text(), await second?.text()];
    expect(texts.filter((text) => text?.startsWith(": queued at 1\n\n"))).toHaveLength(1);
    for (const text of texts) expect(toClient(text?.replaceAll(/^: .*\n\n/gm, "") ?? "")).toBe(normal);
  });

  test("a refusal that comes before that has its own status still", async () => {
    const refused = await on("slow Ollama").refused({ status: 503, body: `{"error":"server busy"}` });
    expect(refused.status).toBe(503);
  });
});

const lines = {
  "ends of \\r\\n": (text: string) => text.replaceAll("\n", "\r\n"),
  "ends of \\r": (text: string) => text.replaceAll("\n", "\r"),
  "no space after the colon": (text: string) => text.replaceAll("data: ", "data:"),
  "comments between": (text: string) => text.replaceAll("data: ", ": keepalive 3/9\n\n: ping\n\ndata: "),
  "one event over several lines": (text: string) => text.replaceAll(',"choices"', '\ndata: ,"choices"'),
  "names, ids and times of events": (text: string) =>
    text.replaceAll("data: ", "event: message\nid: 7\nretry: 10\ndata: "),
  "no empty line at the end": (text: string) => text.trimEnd(),
  "a mark of the byte order": (text: string) => `\uFEFF${text}`,
};

const plainEvents = [
  `{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}`,
  `{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
  "[DONE]",
]
  .map((data) => `data: ${data}\n\n`)
  .join("");

describe("quirk 21: lines are read in every form of the standard, and each event is passed on at once", () => {
  test.each(
    Object.entries(lines).flatMap(([form, write]) =>
      (["vLLM", "llama-server", "LM Studio", "mlx-lm"] as const).map((runtime) => [runtime, form, write] as const),
    ),
  )("%s with %s", async (runtime, _, write) => {
    on(runtime).play((chat) => {
      chat.raw(write(plainEvents));
      chat.end();
    });
    const response = await on(runtime).endpoint.chat({ model: "m", says: "Hi", stream: true });
    expect(toClient(await response.text())).toBe(normal);
  });

  test.each([
    ["ends of \\r\\n", (text: string) => text.replaceAll("\n", "\r\n")],
    ["empty lines between", (text: string) => text.replaceAll("\n", "\n\n")],
    ["no end of the last line", (text: string) => text.trimEnd()],
  ])("Ollama with %s", async (_, write) => {
    on("Ollama").play((chat) => {
      const said = { message: { role: "assistant", content: "Hello" }, done: false };
      const done = { message: { role: "assistant", content: "" }, done: true, done_reason: "stop" };
      chat.raw(write([said, done].map((line) => `${JSON.stringify(line)}\n`).join("")));
      chat.end();
    });
    const response = await on("Ollama").endpoint.chat({ model: "m", says: "Hi", stream: true });
    expect(toClient(await response.text())).toBe(normal);
  });

  test.each(every)("%s says a word, and the client has it before the next is said", async (runtime) => {
    const gate = Promise.withResolvers<void>();
    on(runtime).play(async (chat) => {
      chat.say("Hello");
      await gate.promise;
      chat.done();
    });
    const stream = await on(runtime).endpoint.stream({ model: "m", says: "Hi" });
    await until(() => stream.text === "Hello", { what: "the first word" });
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    gate.resolve();
    expect(await stream.over).toBe("closed");
  });
});

describe("quirk 23: a client that leaves closes the request to the runtime at once, which stops its work", () => {
  test.each(every)(
    "a client of %s that leaves before the first word closes the request to the runtime",
    async (runtime) => {
      const taken = Promise.withResolvers<{ readonly closedEarly: boolean }>();
      on(runtime).play((chat) => taken.resolve(chat.request));
      const leaving = new AbortController();
      const asked = on(runtime).endpoint.chat({ model: "m", says: "Hi", stream: true }, leaving.signal);
      const request = await taken.promise;
      leaving.abort();
      await expect(asked).rejects.toThrow();
      await until(() => request.closedEarly, { what: "the request to be closed" });
    },
  );

  test.each(every)(
    "a client of %s that leaves in the middle of an answer closes the request to the runtime",
    async (runtime) => {
      const taken = Promise.withResolvers<{ readonly closedEarly: boolean }>();
      on(runtime).play((chat) => {
        chat.say("Hello");
        taken.resolve(chat.request);
      });
      const leaving = new AbortController();
      const stream = await on(runtime).endpoint.stream({ model: "m", says: "Hi" }, leaving.signal);
      await until(() => stream.text === "Hello", { what: "the first word" });
      leaving.abort();
      const request = await taken.promise;
      await until(() => request.closedEarly, { what: "the request to be closed" });
    },
  );
});
