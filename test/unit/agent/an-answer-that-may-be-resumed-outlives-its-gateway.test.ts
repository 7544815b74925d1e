import { expect, test } from "vitest";
import { newToken } from "#shared/protocol/identifiers.ts";
import { limits } from "#shared/protocol/limits.ts";
import { agentOnBroker, type Gateway } from "./agent-on-a-broker.ts";

const resumable = { answer: "chatcmpl-1", created: 7 };
const head = { resumable, credit: limits.streamCreditBytes };

const kindsOf = (gateway: Gateway, id: string): string[] =>
  gateway.frames(id).map(({ kind, sequence }) => (sequence > 0 ? `${kind} ${sequence}` : kind));

test("an answer that may be resumed is counted from the token on that the same gateway had, which drops what was still on its way", async () => {
  const { gateway, connectGateway, runtime } = await agentOnBroker();
  const id = await gateway.send(head);
  for (const text of ["One, ", "two, ", "three."]) await runtime.begun().text(text).settled();
  const countedAt = (at: Gateway): unknown => at.frames(id).findLast(({ kind }) => kind === "accept")?.payload;
  await gateway.attach(id, { from: 1, resumes: newToken(), countedTokens: 1 });
  expect(countedAt(gateway)).toMatchObject({ resumed: { countedTokens: 1 } });
  const other = connectGateway();
  await other.attach(id, { from: 1, resumes: newToken(), countedTokens: 1 });
  expect(countedAt(other)).toMatchObject({ resumed: { countedTokens: 3 } });
});

test.each([
  ["misses the message of the move", false],
  ["was taken for gone before the move", true],
])("an answer that may be resumed never goes back to a gateway that froze and %s", async (_, isGone) => {
  const { gateway, connectGateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send(head);
  await runtime.begun().text("One, ").settled();
  gateway.connection.cut();
  if (isGone) await pass(timing.gatewayGoneAfterMs + timing.beatIntervalMs * 2);
  const other = connectGateway();
  const resumes = newToken();
  await other.attach(id, { from: 1, resumes });
  gateway.connection.restore();
  const isTold = (): void => {
    expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "job_moved" } });
  };
  await gateway.attach(id, { from: 1 });
  isTold();
  await gateway.cancel(id);
  expect(runtime.begun().run.signal.aborted).toBe(false);
  await runtime.begun().text("two.").finish().settled();
  isTold();
  expect(kindsOf(other, id)).toEqual(["accept", "data 1", "data 2", "end 3"]);
  // A late attach of the request that lost it is no new request.
  await gateway.attach(id, { from: 1, resumes: newToken() });
  await pass(100);
  expect(other.lastOf(id)).toMatchObject({ payload: { code: "job_moved", movedFrom: resumes } });
  await other.attach(id, { from: 1, resumes });
  expect(other.lastOf(id)).toMatchObject({ payload: { code: "job_moved", movedFrom: resumes } });
});

test("an answer that may be resumed is counted by the next gateway from where a killed one said that it counts, and the living one hears it", async () => {
  const { gateway, connectGateway, runtime, pass } = await agentOnBroker();
  const id = await gateway.send(head);
  await runtime.begun().text("One, ").settled();
  await gateway.say({ kind: "lease", gateway: gateway.id, counted: [[id, 1]] });
  for (const text of ["into ", "the ", "void."]) await runtime.begun().text(text).settled();
  const other = connectGateway();
  await other.attach(id, { from: 1, resumes: newToken() });
  expect(other.frames(id)[0]?.payload).toMatchObject({ resumed: { countedTokens: 1 } });
  expect(gateway.lastOf(id).payload).toMatchObject({ code: "job_moved", countedTokens: 1 });
  // Neither a count nor a receipt of a gateway that lost the answer changes what the owner counts.
  await runtime.begun().finish().settled();
  await gateway.say({ kind: "lease", gateway: gateway.id, counted: [[id, 4]] });
  await gateway.say({ kind: "finish", jobs: [id], gateway: gateway.id });
  await other.say({ kind: "lease", gateway: other.id, counted: [[id, 3]] });
  const last = connectGateway();
  await last.attach(id, { from: 1, resumes: newToken() });
  await pass(100);
  expect(last.frames(id)[0]?.payload).toMatchObject({ resumed: { countedTokens: 3 } });
});

test("an answer that may be resumed is not counted again by the next gateway where the one before has its end and its receipt is on the way", async () => {
  const { gateway, connectGateway, runtime, pass } = await agentOnBroker();
  const id = await gateway.send(head);
  for (const text of ["One, ", "two, ", "three."]) await runtime.begun().text(text).settled();
  await gateway.say({ kind: "lease", gateway: gateway.id, counted: [[id, 1]] });
  await runtime.begun().finish().settled();
  const other = connectGateway();
  await other.attach(id, { from: 1, resumes: newToken() });
  expect(other.frames(id)).toEqual([]);
  await gateway.say({ kind: "finish", jobs: [id], gateway: gateway.id });
  await pass(100);
  const [accept] = other.frames(id);
  expect(accept?.payload).toMatchObject({ resumed: { countedTokens: expect.toSatisfy((count) => count >= 3) } });
  expect(other.lastOf(id).kind).toBe("end");
});

test("an answer that may be resumed stays with the request that resumed it last when attaches of both waited for a receipt", async () => {
  const { gateway, connectGateway, runtime, clock, settle } = await agentOnBroker();
  const id = await gateway.send(head);
  await runtime.begun().text("One.").finish().settled();
  const [former, latter] = [connectGateway(), connectGateway()];
  const [early, late] = [newToken(), newToken()];
  await former.attach(id, { from: 1, resumes: early });
  await latter.attach(id, { from: 1, resumes: late });
  // The former gateway repeats its attach. When that has waited, the answer has moved on from its request.
  await former.attach(id, { from: 1, resumes: early });
  expect([former.frames(id), latter.frames(id)]).toEqual([[], []]);
  clock.advance(100);
  await settle();
  expect(former.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "job_moved", movedFrom: early } });
  expect(kindsOf(latter, id)).toEqual(["accept", "data 1", "end 2"]);
});

test("an answer that may be resumed is sent again for resumesMax requests at most, since each time costs the line of its machine", async () => {
  const { connectGateway, gateway, runtime } = await agentOnBroker();
  const id = await gateway.send(head);
  await runtime.begun().text("One, ").settled();
  const other = connectGateway();
  const requests = Array.from({ length: limits.resumesMax }, () => newToken());
  for (const resumes of [...requests, ...requests.slice(-1)]) {
    await other.attach(id, { from: 1, resumes });
    expect(other.lastOf(id).kind).toBe("data");
  }
  await other.attach(id, { from: 1, resumes: newToken() });
  expect(other.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "job_unknown" } });
});

test("an answer that may be resumed goes on where a gateway that does not know it any more hears of it by a beat", async () => {
  const { gateway, connectGateway, runtime } = await agentOnBroker();
  const id = await gateway.send(head);
  await runtime.begun().text("One, ").settled();
  await gateway.say({ kind: "cancel", job: id, reason: "gave_up" });
  expect(runtime.begun().run.signal.aborted).toBe(false);
  const other = connectGateway();
  await other.attach(id, { from: 1, resumes: newToken() });
  await runtime.begun().finish().settled();
  expect(kindsOf(other, id).slice(0, 2)).toEqual(["accept", "data 1"]);
  expect(other.lastOf(id).kind).toBe("end");
});

test("an answer that may be resumed is ended when nobody resumed it in time, but not after its gateway came back", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker({ slots: 2 });
  const id = await gateway.send(head);
  await gateway.send(head);
  gateway.connection.cut();
  await pass(timing.gatewayGoneAfterMs + timing.beatIntervalMs * 2);
  gateway.connection.restore();
  await gateway.attach(id, { from: 1 });
  for (let passedMs = 0; passedMs < timing.resumableForMs; passedMs += timing.leaseIntervalMs) {
    await gateway.say({ kind: "lease", gateway: gateway.id });
    runtime.begun().text("x");
    await pass(timing.leaseIntervalMs);
  }
  expect(runtime.chats.map(({ run }) => run.signal.aborted)).toEqual([false, true]);
});

test("an answer that may be resumed is kept for a while after its end, for its own key alone", async () => {
  const { gateway, connectGateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send(head);
  await runtime.begun().text("One.").finish().settled();
  await gateway.say({ kind: "finish", jobs: [id] });
  const [thief, owner, late] = [connectGateway(), connectGateway(), connectGateway()];
  await thief.attach(id, { from: 1, keyId: "another", resumes: newToken() });
  expect(thief.frames(id)).toMatchObject([{ kind: "fault", payload: { code: "job_unknown" } }]);
  await owner.attach(id, { from: 1, resumes: newToken() });
  expect(kindsOf(owner, id).slice(0, 3)).toEqual(["accept", "data 1", "end 2"]);
  await owner.say({ kind: "finish", jobs: [id] });
  await pass(timing.resumableForMs + timing.beatIntervalMs);
  await late.attach(id, { from: 1, resumes: newToken() });
  expect(late.frames(id)).toMatchObject([{ kind: "fault", payload: { code: "job_unknown" } }]);
});

test("an answer that may be resumed is left with its gateway where it cannot be resumed: it was not asked to be, or failed without a word", async () => {
  const { gateway, connectGateway, runtime } = await agentOnBroker({ slots: 2 });
  const plain = await gateway.send({ credit: limits.streamCreditBytes });
  runtime.begun().text("One.");
  const failed = await gateway.send(head);
  await runtime.begun(1).fail(new Error("the runtime is broken")).settled();
  const other = connectGateway();
  for (const id of [plain, failed]) await other.attach(id, { from: 1, resumes: newToken() });
  for (const id of [plain, failed])
    expect(other.frames(id)).toMatchObject([{ kind: "fault", payload: { code: "job_unknown" } }]);
  expect(gateway.lastOf(plain).kind).toBe("data");
});
