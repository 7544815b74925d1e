import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { AnswerAssembly } from "../../../services/agent/jobs/assemble-answer.ts";
import { Fault } from "#shared/fault/fault.ts";
import { chatOn, eventsOf, textOf } from "../../harness/chat-on.ts";
import { until } from "../../harness/until.ts";
import {
  eventKinds,
  fakedRuntime,
  kinds,
  oneSaying,
  startFake,
  type AnyChat,
  type FakedRuntime,
  type OnChat,
} from "./faked-runtimes.ts";

const tools = [{ type: "function" as const, function: { name: "f" } }];
const secret = "/root/models at 10.1.2.3";

const wellAnswered: OnChat = (chat) => {
  chat.say("Hello");
  chat.done();
};

/** Says a first word and then exactly this, and ends. */
const saysThen =
  (...rest: readonly string[]): OnChat =>
  (chat) => {
    chat.say("Once upon");
    for (const bytes of rest) chat.raw(bytes);
    chat.end();
  };

const page: OnChat = (chat) =>
  chat.refuseWith(200, { contentType: "text/html", body: `<!doctype html><html>${secret}</html>` });

const garbage: OnChat = (chat) => {
  chat.raw(Buffer.from([0x00, 0xff, 0xfe, 0x1f, 0x8b, 0x0a, 0x80, 0x0d, 0x0a, 0x0a]));
  chat.end();
};

const event = (data: object | string): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const delta = (given: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: given, finish_reason: finish }],
});
const call = (text: string) =>
  delta({ tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "f", arguments: text } }] });

describe.each(kinds)("%s", (kind) => {
  let faked: FakedRuntime;
  beforeAll(async () => {
    faked = await fakedRuntime(kind);
  });
  afterAll(async () => {
    await faked.runtime.close?.();
    await faked.stop();
  });

  /** What was said of a chat that had to fail, and its fault; and then the next one works. */
  async function failed(onChat: OnChat): Promise<{ said: string; fault: Fault }> {
    faked.play(onChat);
    const assembly = new AnswerAssembly();
    const said: AnswerEvent[] = [];
    let fault: Fault | undefined;
    try {
      for await (const batch of chatOn(faked.runtime, { model: "m", tools })) said.push(...assembly.push(batch));
      assembly.end();
    } catch (error) {
      fault = Fault.from(error);
    }
    if (fault === undefined) throw new Error(`the chat did not fail; it said ${JSON.stringify(said)}`);
    expect(fault.message).not.toContain(secret);
    expect(fault.internal ?? "").not.toContain(secret);
    expect(await works()).toBe("Hello");
    return { said: textOf(said), fault };
  }

  async function works(): Promise<string> {
    faked.play(wellAnswered);
    return textOf(await eventsOf(chatOn(faked.runtime, { model: "m" })));
  }

  test("that dies before its first byte does not answer", async () => {
    const { said, fault } = await failed((chat) => chat.cut());
    expect({ said, code: fault.code }).toEqual({ said: "", code: "runtime_offline" });
  });

  test("that dies in the middle of an answer broke it off, and what it said is kept", async () => {
    const { said, fault } = await failed((chat) => {
      chat.say("Once upon");
      setImmediate(() => chat.cut());
    });
    expect({ said, code: fault.code }).toEqual({ said: "Once upon", code: "upstream_error" });
  });

  test("that hangs before its first token is waited for, and its request is closed when nobody waits", async () => {
    const taken = Promise.withResolvers<AnyChat>();
    faked.play((chat) => taken.resolve(chat));
    const abort = new AbortController();
    const reason = new Error("nobody waits");
    const ended = eventsOf(chatOn(faked.runtime, { model: "m" }, { signal: abort.signal }));
    const { request } = await taken.promise;
    abort.abort(reason);
    await expect(ended).rejects.toBe(reason);
    await until(() => request.closedEarly, { what: "the request to be closed" });
    expect(await works()).toBe("Hello");
  });

  test.each<[string, OnChat]>([
    ["a page of HTML", page],
    ["bytes of no kind", garbage],
    [
      "a page of a proxy's as a failure",
      (chat) => chat.refuseWith(502, { contentType: "text/html", body: `<html>${secret}` }),
    ],
    ["an empty body", (chat) => chat.refuseWith(200, { contentType: "application/json", body: "" })],
    [
      "JSON of another shape",
      (chat) => chat.refuseWith(200, { contentType: "application/json", body: '{"choices":"none"}' }),
    ],
  ])("that answers %s failed", async (_, onChat) => {
    const { said, fault } = await failed(onChat);
    expect({ said, code: fault.code }).toEqual({ said: "", code: "upstream_error" });
  });

  test.each<[string, string]>([
    ["HTML", `<html>${secret}</html>\n\n`],
    ["bytes of no kind", "\u0000\u001f\u0080\n\n"],
    ["an end before it is done", ""],
  ])("that goes on with %s failed, and what it said is kept", async (_, bytes) => {
    const { said, fault } = await failed(saysThen(bytes));
    expect({ said, code: fault.code }).toEqual({ said: "Once upon", code: "upstream_error" });
  });

  test("that was gone works again when it is back", async () => {
    await using other = await fakedAgain();
    await other.stop();
    await expect(eventsOf(chatOn(other.runtime, { model: "m" }))).rejects.toMatchObject({ code: "runtime_offline" });
    await using back = await startFake(kind, other.port);
    back.onChat = wellAnswered;
    expect(textOf(await eventsOf(chatOn(other.runtime, { model: "m" })))).toBe("Hello");
  });

  async function fakedAgain(): Promise<FakedRuntime & AsyncDisposable> {
    const again = await fakedRuntime(kind);
    return { ...again, [Symbol.asyncDispose]: async () => again.runtime.close?.() };
  }

  test("quirk 22: whose characters are cut at any byte loses none of them", async () => {
    const text = "é€🌍";
    const bytes = Buffer.from(oneSaying(kind, text));
    const from = bytes.indexOf(text);
    for (let cut = from; cut <= from + Buffer.byteLength(text); cut += 1) {
      const gate = Promise.withResolvers<void>();
      faked.play(async (chat) => {
        chat.raw(bytes.subarray(0, cut));
        await gate.promise;
        chat.raw(bytes.subarray(cut));
        chat.done();
      });
      // The second half is not sent before the first was read.
      const options = { onProgress: (silence?: string) => void (silence === "loading" || gate.resolve()) };
      expect(textOf(await eventsOf(chatOn(faked.runtime, { model: "m" }, options)))).toBe(text);
    }
  });
});

describe.each(eventKinds)("%s", (kind) => {
  let faked: FakedRuntime;
  beforeAll(async () => {
    faked = await fakedRuntime(kind);
  });
  afterAll(async () => {
    await faked.runtime.close?.();
    await faked.stop();
  });

  async function ended(...events: readonly string[]): Promise<{ said: string; end: unknown }> {
    faked.play(saysThen(...events));
    const said: AnswerEvent[] = [];
    try {
      for await (const batch of chatOn(faked.runtime, { model: "m", tools })) said.push(...batch);
      return { said: textOf(said), end: said.find(({ kind: each }) => each === "finish") };
    } catch (error) {
      return { said: textOf(said), end: Fault.from(error).code };
    }
  }

  test.each<[string, string[]]>([
    ["an error and [DONE]", [event({ error: { message: secret, code: 500 } }), event("[DONE]")]],
    ["an error and no [DONE]", [event({ error: { message: secret, code: 500 } })]],
    ["an error as a text", [event({ error: secret })]],
    ["an error as an event of that name", [`event: error\n${event({ message: secret })}`]],
    ["[DONE] amid the arguments of a call", [event(call('{"city":')), event("[DONE]")]],
    ["an event that is no JSON", [event("{not json")]],
    ["arguments that are no JSON", [event(call('{"city":')), event(delta({}, "tool_calls")), event("[DONE]")]],
    [
      "arguments without a name",
      [event(delta({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] })), event(delta({}, "tool_calls"))],
    ],
  ])("that goes on with %s failed", async (_, events) => {
    expect(await ended(...events)).toEqual({ said: "Once upon", end: "upstream_error" });
  });

  test("that says [DONE] and no reason was done", async () => {
    expect(await ended(event("[DONE]"))).toEqual({ said: "Once upon", end: { kind: "finish", reason: "stop" } });
  });

  test.each(["unheard_of", "eos", "STOP"])("that ends for the reason %s was done", async (reason) => {
    const stop = { kind: "finish", reason: "stop" };
    expect(await ended(event(delta({}, reason)), event("[DONE]"))).toEqual({ said: "Once upon", end: stop });
  });
});

describe("ollama", () => {
  test.each<[string, object]>([
    ["an error", { error: secret }],
    ["arguments that are no object", { message: { tool_calls: [{ function: { name: "f", arguments: "{" } }] } }],
    ["a call without a name", { message: { tool_calls: [{ function: { arguments: {} } }] } }],
    ["a line of another shape", { message: 7 }],
  ])("that goes on with %s failed", async (_, line) => {
    const faked = await fakedRuntime("ollama");
    faked.play(saysThen(`${JSON.stringify(line)}\n`));
    await expect(eventsOf(chatOn(faked.runtime, { model: "m", tools }))).rejects.toMatchObject({
      code: "upstream_error",
    });
    await faked.runtime.close?.();
    await faked.stop();
  });
});
