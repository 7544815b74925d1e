import { expect, test } from "vitest";
import type { ChatBody, CompleteBody } from "#shared/protocol/job-bodies.ts";
import type { OfferedModel, Seam } from "#shared/protocol/model.ts";
import {
  continuedBytesInAllMax,
  continuedBytesMax,
  type ContinuationRoom,
  DeliveredAnswer,
  wholeUsage,
} from "../../../services/gateway/jobs/continue-answer.ts";
import { payloadOf } from "../../harness/answer-payload.ts";
import { broken, finish, placing, type Wish } from "./placed-requests.ts";
import { end } from "./follower-on-a-wire.ts";

const asked = { messages: [{ role: "user", content: "Count to four." }], max_tokens: 10 } satisfies ChatBody;
const body = (chat: Partial<ChatBody> = {}): Buffer => Buffer.from(JSON.stringify({ ...asked, ...chat }));

/** Passes records of an answer on, as its course does. */
function passOn(answer: DeliveredAnswer, records: Uint8Array): void {
  if (records.byteLength > answer.freeBytes && !answer.grows(records.byteLength)) return;
  answer.records.set(records, answer.records.byteLength - answer.freeBytes);
  answer.freeBytes -= records.byteLength;
}

/** An answer of which the client has this much. */
function delivered(
  text: string,
  {
    chat = {},
    thought = "",
    room = { heldBytes: 0 },
  }: { chat?: Partial<ChatBody>; thought?: string; room?: ContinuationRoom } = {},
): DeliveredAnswer {
  const answer = new DeliveredAnswer(room);
  if (thought !== "") passOn(answer, payloadOf({ kind: "reasoning", text: thought }));
  if (text !== "") passOn(answer, payloadOf({ kind: "text", text }));
  answer.keep(body(chat));
  return answer;
}

function asksFor(answer: DeliveredAnswer, tokens = 2): (ChatBody & { seam: Seam }) | undefined {
  const continuation = answer.continuation(tokens);
  return continuation && { ...JSON.parse(Buffer.from(continuation.body).toString()), seam: continuation.seam };
}

test("the rest of an answer is asked for with what was delivered as the model's own last message, and the tokens that are left", () => {
  expect(asksFor(delivered("One, two"))).toEqual({
    messages: [...asked.messages, { role: "assistant", content: "One, two" }],
    max_tokens: 8,
    seam: "plain",
  });
});

test("the rest of an answer is asked for with the thought before it, and as a kind of its own with tools", () => {
  const tools = [{ type: "function" as const, function: { name: "add" } }];
  expect(asksFor(delivered("One", { thought: "Hm." }))).toMatchObject({
    messages: [{}, { content: "One", reasoning_content: "Hm." }],
    seam: "thought",
  });
  expect(asksFor(delivered("One", { chat: { tools } }))?.seam).toBe("tools");
  expect(asksFor(delivered("One", { chat: { tools }, thought: "Hm." }))?.seam).toBe("tools and thought");
});

test("the rest of an answer is asked for as a part of the answer that the client began itself", () => {
  const messages: ChatBody["messages"] = [...asked.messages, { role: "assistant", content: "Sure: " }];
  expect(asksFor(delivered("one", { chat: { messages } }))?.messages).toEqual([
    ...asked.messages,
    { role: "assistant", content: "Sure: one" },
  ]);
});

test("the rest of an answer is asked for with one token at least", () => {
  expect(asksFor(delivered("One"), 10)?.max_tokens).toBe(1);
});

test.each<[string, DeliveredAnswer]>([
  ["within a thought", delivered("", { thought: "Hm." })],
  ["for several answers", delivered("One", { chat: { n: 2 } })],
  ["for an answer with logprobs", delivered("One", { chat: { logprobs: true } })],
  ["for JSON", delivered("{", { chat: { response_format: { type: "json_object" } } })],
  ["under a grammar", delivered("One", { chat: { grammar: 'root ::= "One"' } })],
  ["under a rule for the whole answer", delivered("One", { chat: { structured_outputs: { regex: "One.*" } } })],
  ["where a call is demanded", delivered("One", { chat: { tool_choice: "required" } })],
])("the rest of an answer is asked for never %s", (_, answer) => {
  expect(answer.continuation(1)).toBeUndefined();
});

test("the rest of an answer is asked for never within a call, nor after the end", () => {
  const calling = delivered("One");
  passOn(calling, payloadOf({ kind: "tool-call-start", index: 0, name: "add" }));
  const over = delivered("One");
  passOn(over, payloadOf({ kind: "finish", reason: "stop" }));
  expect([calling.continuation(1), over.continuation(1)]).toEqual([undefined, undefined]);
});

const begun = (fields: Partial<CompleteBody> = {}): DeliveredAnswer => {
  const answer = new DeliveredAnswer({ heldBytes: 0 });
  passOn(answer, payloadOf({ kind: "text", text: "two, three" }));
  answer.keep(Buffer.from(JSON.stringify({ prompts: ["One, "], max_tokens: 10, ...fields })));
  return answer;
};

test("the rest of a continued text is asked for with what was delivered behind its prompt, and the tokens that are left", () => {
  expect(asksFor(begun())).toEqual({ prompts: ["One, two, three"], max_tokens: 8, seam: "plain" });
});

test("the rest of a continued text has its prompt once, where the answer began with it", () => {
  expect(asksFor(begun({ echo: true }))).toMatchObject({ prompts: ["two, three"] });
});

test.each<Partial<CompleteBody>>([{ prompts: ["One", "Two"] }, { n: 2 }, { logprobs: 0 }, { suffix: "five" }])(
  "the rest of a continued text is never asked for with %o",
  (fields) => {
    expect(begun(fields).continuation(1)).toBeUndefined();
  },
);

test("the memory for answers that may go on elsewhere holds no more of one request than its bound, and gives everything back", () => {
  const room = { heldBytes: 0 };
  const long = delivered("x".repeat(continuedBytesMax), { room });
  expect(long.continuation(1)).toBeUndefined();
  const short = delivered("One", { room });
  short.end();
  expect(room.heldBytes).toBe(0);
});

test("the memory for answers that may go on elsewhere refuses no request when it is full: that answer only cannot go on elsewhere", () => {
  const room = { heldBytes: continuedBytesInAllMax };
  expect(delivered("One", { room }).continuation(1)).toBeUndefined();
});

test("the usage of an answer of two machines has one prompt and all tokens of the answer", () => {
  const part = { promptTokens: 27, completionTokens: 5, cachedTokens: 27 };
  expect(wholeUsage(part, { tokens: 7, thought: 2 })).toEqual({
    promptTokens: 20,
    completionTokens: 12,
    cachedTokens: 20,
    reasoningTokens: 2,
  });
});

const same: Partial<OfferedModel> = { digest: "sha256:a", continues: ["plain"] };
const wish = (): Wish => ({ delivered: new DeliveredAnswer({ heldBytes: 0 }) });
const says = (text: string): string => payloadOf({ kind: "text", text }).toString();

/** A request whose first machine has said a part of the answer and failed. */
async function brokenOff(told: Readonly<Record<string, Partial<OfferedModel>>>, wished = wish()) {
  const requests = await placing({ told, present: Object.keys(told) });
  const run = requests.run(body().toString(), wished);
  const { machine, job } = await requests.next();
  machine.say(job, "data", says("One, "), 1, 2);
  machine.say(job, "fault", broken, 2);
  await requests.settle();
  return { ...requests, outcome: run };
}

test("an answer whose machine is lost goes on at a machine with the same model, as one answer with one usage", async () => {
  const { next, heard, outcome, settle, courses } = await brokenOff({ "gpu-1": same, "gpu-2": same });
  const { machine, job, body: continued } = await next();
  expect(JSON.parse(continued).messages.at(-1)).toEqual({ role: "assistant", content: "One, " });
  machine.say(job, "data", says("two.") + finish, 1, 2);
  machine.say(job, "end", { ...end, usage: { promptTokens: 12, completionTokens: 2 } }, 2);
  await settle();
  expect(await outcome).toBe("end");
  expect(heard.join("")).toBe("One, two.");
  expect(courses[0]).toMatchObject({ usage: { promptTokens: 10, completionTokens: 4 }, outputTokens: 4, failovers: 1 });
  expect(courses[0]?.tried.map(({ fromTokens }) => fromTokens)).toEqual([undefined, 2]);
});

test("an answer whose machine is lost goes on a second time, with what both machines said", async () => {
  const { next, settle, outcome, leaving } = await brokenOff({ "gpu-1": same, "gpu-2": same, "gpu-3": same });
  const second = await next();
  second.machine.say(second.job, "data", says("two, "), 1, 2);
  second.machine.say(second.job, "fault", { ...broken, code: "shutting_down" }, 2);
  await settle();
  const third = await next();
  expect(JSON.parse(third.body).messages.at(-1).content).toBe("One, two, ");
  expect(JSON.parse(third.body).max_tokens).toBe(6);
  leaving.abort();
  await outcome;
});

test.each<[string, Partial<OfferedModel>]>([
  ["has another model under the same name", { ...same, digest: "sha256:b" }],
  ["has not proved that it goes on with such answers", { ...same, continues: ["thought"] }],
  ["tells nothing of its model", {}],
])("an answer whose machine is lost ends in the fault of its machine where the other one %s", async (_, other) => {
  const { outcome, placed } = await brokenOff({ "gpu-1": same, "gpu-2": other });
  expect(await outcome).toBe("upstream_error");
  expect(placed()).toBe(1);
});

test("an answer whose machine is lost ends in that fault where the machine that began it does not tell which model it is", async () => {
  const unnamed: Partial<OfferedModel> = { continues: ["plain"] };
  const { outcome } = await brokenOff({ "gpu-1": unnamed, "gpu-2": unnamed });
  expect(await outcome).toBe("upstream_error");
});

test("an answer whose machine is lost ends in that fault where nothing may go on elsewhere", async () => {
  const { outcome, placed } = await brokenOff({ "gpu-1": same, "gpu-2": same }, {});
  expect(await outcome).toBe("upstream_error");
  expect(placed()).toBe(1);
});

test("an answer whose machine is lost ends in that fault where the machines that could go on are full", async () => {
  const { next, outcome, settle } = await brokenOff({ "gpu-1": same, "gpu-2": same });
  const { machine, job } = await next();
  machine.say(job, "reject", { reason: "busy", message: "full" });
  await settle();
  expect(await outcome).toBe("upstream_error");
});

test("an answer whose machine is lost goes nowhere when the runtimes of two machines died under it", async () => {
  const { next, outcome, settle } = await brokenOff({ "gpu-1": same, "gpu-2": same, "gpu-3": same });
  const died = { ...broken, runtimeDied: true };
  const second = await next();
  second.machine.say(second.job, "data", says("two, "), 1, 2);
  second.machine.say(second.job, "fault", died, 2);
  await settle();
  const third = await next();
  third.machine.say(third.job, "fault", died, 1);
  await settle();
  expect(await outcome).toBe("poison_request");
});
