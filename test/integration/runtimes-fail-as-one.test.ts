import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { AnswerAssembly } from "../../services/agent/jobs/run-job.ts";
import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import type { Runtime } from "../../services/agent/runtimes/runtime.ts";
import { chatOn, eventsOf, textOf } from "../harness/ask-runtime.ts";
import { until } from "../harness/until.ts";
import {
  fakedRuntime,
  fakesOfTests,
  kinds,
  oneSaying,
  startFake,
  type AnyChat,
  type FakedRuntime,
  type OnChat,
} from "./runtime-faults/faked-runtimes.ts";

/** What a runtime may say of itself, its machine and its users, and no client is to read. */
const secret = "/root/models/llama.gguf at 10.1.2.3: once upon a time";
const isTold = /root|gguf|10\.1\.2\.3|127\.0\.0\.1|localhost|http:|once upon|<|\{|\\|ECONN|undici|socket/i;

const tools = [{ type: "function" as const, function: { name: "f" } }];

const fakeOf = fakesOfTests();

interface Failure {
  readonly said: string;
  readonly code: FaultCode;
  readonly param: string | undefined;
  readonly message: string;
  readonly internal: string;
}

/** What came of a chat that had to fail. */
async function failureOf(runtime: Runtime): Promise<Failure> {
  const assembly = new AnswerAssembly();
  const events: AnswerEvent[] = [];
  try {
    for await (const batch of chatOn(runtime, { model: "m", tools })) events.push(...assembly.push(batch));
    assembly.end();
  } catch (error) {
    const { code, param, message, internal = "" } = Fault.from(error);
    return { said: textOf(events), code, param, message, internal };
  }
  throw new Error(`${runtime.name} did not fail; it said ${JSON.stringify(events)}`);
}

/** The next request on the same runtime, once that is well again. */
async function works({ runtime, play }: Pick<FakedRuntime, "runtime" | "play">): Promise<string> {
  play((chat) => {
    chat.say("Hello");
    chat.done();
  });
  return textOf(await eventsOf(chatOn(runtime, { model: "m" })));
}

/** What a value as this is called in the answer of a kind: a line of JSON for one, an event for all others. */
const sent = (kind: string, value: object): string =>
  kind === "ollama" ? `${JSON.stringify(value)}\n` : `data: ${JSON.stringify(value)}\n\n`;

const chunk = (delta: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const page = `<!doctype html><html><body>${secret}</body></html>\n\n`;
const garbage = Buffer.from([0x00, 0xff, 0xfe, 0x1f, 0x8b, 0x0a, 0x80, 0x0d, 0x0a, 0x0a]);

/** Says something first, and only then what is given. */
const afterWords =
  (rest: OnChat): OnChat =>
  (chat) => {
    chat.say("Well");
    return rest(chat);
  };

/** A call of a tool whose arguments stop in their middle, and an end as if nothing was wrong. */
function halfACall(kind: string, chat: AnyChat): void {
  if (kind === "ollama") {
    const call = { function: { name: "f", arguments: `{"path":"${secret}` } };
    chat.raw(sent(kind, { message: { role: "assistant", content: "", tool_calls: [call] }, done: false }));
  } else {
    const call = { index: 0, id: "c", type: "function", function: { name: "f", arguments: `{"path":"${secret}` } };
    chat.raw(sent(kind, chunk({ tool_calls: [call] })));
    chat.raw(sent(kind, chunk({}, "tool_calls")));
  }
  chat.end();
}

type Mishap = readonly [play: (kind: string) => OnChat, said: string, code: FaultCode];

const refusedWith =
  (status: number, contentType: string, body: string): Mishap[0] =>
  () =>
  (chat) =>
    chat.refuseWith(status, { contentType, body });

/** Sends this, behind some words or at once, and ends. */
const ending =
  (bytes: string | Buffer): OnChat =>
  (chat) => {
    chat.raw(bytes);
    chat.end();
  };

const mishaps: Readonly<Record<string, Mishap>> = {
  "dies before its first byte": [() => (chat) => chat.cut(), "", "runtime_offline"],
  "dies in the middle": [() => afterWords((chat) => void setImmediate(() => chat.cut())), "Well", "upstream_error"],
  "ends before it is done": [() => afterWords((chat) => chat.end()), "Well", "upstream_error"],
  "ends without a word": [refusedWith(200, "text/event-stream", ""), "", "upstream_error"],
  "answers with a page": [refusedWith(200, "text/html", page), "", "upstream_error"],
  "answers with a page of a proxy's": [refusedWith(502, "text/html", page), "", "upstream_error"],
  "answers with JSON of another shape": [
    refusedWith(200, "application/json", '{"choices":"none"}'),
    "",
    "upstream_error",
  ],
  "goes on with a page": [() => afterWords(ending(page)), "Well", "upstream_error"],
  "answers with garbage": [() => ending(garbage), "", "upstream_error"],
  "goes on with garbage": [() => afterWords(ending(garbage)), "Well", "upstream_error"],
  "tells an error in the middle": [
    (kind) => afterWords(ending(sent(kind, { error: kind === "ollama" ? secret : { message: secret, code: 500 } }))),
    "Well",
    "upstream_error",
  ],
  "tells an error in the middle and a regular end": [
    (kind) =>
      afterWords((chat) => {
        chat.raw(sent(kind, { error: secret }));
        chat.done();
      }),
    "Well",
    "upstream_error",
  ],
  "tells an error as a success": [(kind) => ending(sent(kind, { error: secret })), "", "upstream_error"],
  "calls a tool with half of its arguments": [
    (kind) => afterWords((chat) => halfACall(kind, chat)),
    "Well",
    "upstream_error",
  ],
  "fails before it says anything": [() => (chat) => chat.refuse(500, secret), "", "upstream_error"],
  "wants a key": [() => (chat) => chat.refuse(401, secret), "", "upstream_error"],
  "refuses the request": [() => (chat) => chat.refuse(400, secret), "", "bad_request"],
  "has too much to do": [() => (chat) => chat.refuse(503, secret), "", "server_is_overloaded"],
};

describe("whichever runtime it is, a client is told the same of one that", () => {
  test.each(Object.keys(mishaps))("%s, and the next request works", async (name) => {
    const [play, said, code] = mishaps[name] as Mishap;
    const messages = new Map<string, string>();
    const told: [string, Omit<Failure, "message" | "internal">][] = [];
    for (const kind of kinds) {
      const one = fakeOf(kind);
      one.play(play(kind));
      const { message, internal, ...failure } = await failureOf(one.runtime);
      messages.set(kind, message);
      // A runtime's own words may quote the prompt, so that not even the log is told.
      expect(internal, kind).not.toContain(secret);
      told.push([kind, failure]);
      expect(await works(one), `after ${kind}`).toBe("Hello");
    }
    const all = Object.fromEntries(kinds.map((kind) => [kind, { said, code, param: undefined }]));
    expect(Object.fromEntries(told)).toEqual(all);
    for (const [kind, message] of messages) expect(message, kind).not.toMatch(isTold);
  });

  test("is gone, and the next request works once it is back", async () => {
    for (const kind of kinds) {
      const gone = await fakedRuntime(kind);
      const { runtime, port } = gone;
      try {
        await gone.stop();
        const { message, internal, ...failure } = await failureOf(runtime);
        // Its operator has to know which one it is.
        expect(internal, kind).toContain(String(port));
        expect({ kind, ...failure }).toEqual({ kind, said: "", code: "runtime_offline", param: undefined });
        expect(message, kind).not.toMatch(isTold);
        expect(message, kind).not.toContain(String(port));
        await using back = await startFake(kind, port);
        const play = (onChat: OnChat): void => {
          back.onChat = onChat;
        };
        expect(await works({ runtime, play })).toBe("Hello");
      } finally {
        await runtime.close?.();
      }
    }
  });

  test("hangs before its first token: its request is closed when nobody waits, and the next works", async () => {
    for (const kind of kinds) {
      const one = fakeOf(kind);
      const taken = Promise.withResolvers<AnyChat>();
      one.play((chat) => taken.resolve(chat));
      const waiting = new AbortController();
      const left = new Error("nobody waits");
      const ended = eventsOf(chatOn(one.runtime, { model: "m" }, { signal: waiting.signal }));
      const { request } = await taken.promise;
      expect(request.closedEarly).toBe(false);
      waiting.abort(left);
      await expect(ended).rejects.toBe(left);
      await until(() => request.closedEarly, { what: `the request to ${kind} to be closed` });
      expect(await works(one), `after ${kind}`).toBe("Hello");
    }
  });
});

describe("a character that is cut between two reads, at any byte, arrives whole", () => {
  test.each(kinds)("%s", async (kind) => {
    const one = fakeOf(kind);
    const text = "é€🌍";
    const whole = Buffer.from(oneSaying(kind, text));
    const from = whole.indexOf(text);
    for (let cut = from; cut <= from + Buffer.byteLength(text); cut += 1) {
      const read = Promise.withResolvers<void>();
      one.play(async (chat) => {
        chat.raw(whole.subarray(0, cut));
        await read.promise;
        chat.raw(whole.subarray(cut));
        chat.done();
      });
      const onProgress = (silence?: string): void => (silence === "loading" ? undefined : read.resolve());
      expect(textOf(await eventsOf(chatOn(one.runtime, { model: "m" }, { onProgress }))), `at ${cut}`).toBe(text);
    }
  });
});
