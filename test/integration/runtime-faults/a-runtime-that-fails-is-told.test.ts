import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { chatOn, eventsOf, textOf } from "../../harness/ask-runtime.ts";
import { eventKinds, fakedRuntime, type FakedRuntime, type OnChat } from "./faked-runtimes.ts";

const tools = [{ type: "function" as const, function: { name: "f" } }];
const secret = "/root/models at 10.1.2.3";

/** Says a first word and then exactly this, and ends. */
const saysThen =
  (...rest: readonly string[]): OnChat =>
  (chat) => {
    chat.say("Once upon");
    for (const bytes of rest) chat.raw(bytes);
    chat.end();
  };

const event = (data: object | string): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const delta = (given: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: given, finish_reason: finish }],
});
const call = (text: string) =>
  delta({ tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "f", arguments: text } }] });

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
