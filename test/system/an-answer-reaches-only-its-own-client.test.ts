import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { issueKey, trunkline } from "../harness/trunkline-command.ts";

let up: UpProcess;
beforeAll(async () => {
  up = await startUp({ TRUNKLINE_LOG_LEVEL: "trace" });
});
afterAll(() => up[Symbol.asyncDispose]());

const secret = "correct-horse-battery-staple";
const says = (content: string) => ({ model: "scripted", messages: [{ role: "user", content }] });

test("no error repeats what it was sent, and every request has an id of its own", async () => {
  const ids = new Set<string | null>();
  const wrong = [{ temperature: secret }, { messages: [{ role: secret, content: secret }] }, { stop: [secret, 7] }];
  for (const fields of wrong) {
    const response = await up.endpoint.chat({ ...says("Hello"), ...fields });
    ids.add(response.headers.get("x-request-id"));
    expect([response.status, await response.text()]).toEqual([400, expect.not.stringContaining(secret)]);
  }
  expect(ids.size).toBe(wrong.length);
});

test("no key, no prompt and no answer is ever logged, at whatever level, whatever goes wrong", async () => {
  const store = { TRUNKLINE_STATE_DIR: up.stateDir };
  const revoked = await issueKey(store);
  await trunkline(["keys", "revoke", revoked.id], store);
  expect(await up.endpoint.answer(says(`/script tokens=2 nonce=${secret}`))).toContain(secret);
  const stream = await up.endpoint.stream(says(`/script tokens=3 fail_at=2 nonce=${secret}`));
  await stream.over;
  expect(stream.text).toContain(secret);
  for (const key of [revoked.key, `sk-${secret}`]) {
    const refused = await up.endpoint.withKey(key).chat(says(secret));
    expect([refused.status, await refused.text()]).toEqual([401, expect.not.stringContaining(key)]);
  }

  const { port } = new URL(up.endpoint.baseUrl);
  const garbage = connect(Number(port), "127.0.0.1").resume();
  garbage.end(`POST /v1/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${up.endpoint.key}\r\n${secret}\r\n\r\n`);
  await once(garbage, "close");

  expect(await up.terminate()).toBe(0);
  const log = await up.stderr();
  expect(log).toContain('"msg":"request"');
  expect(log).toContain("a connection sent no HTTP");
  expect(log).not.toContain(secret);
  expect(log).not.toContain([...Buffer.from(secret)].join(","));
  for (const key of [up.endpoint.key, revoked.key]) expect(log).not.toContain(key.split("_")[2]);
});

test("fields that mean nothing here are ignored, and named in a header", async () => {
  await using other = await startUp();
  const odd = { user: "me", metadata: { a: "b" }, messages: [{ role: "user", content: "Hello", weight: 1 }] };
  const response = await other.endpoint.chat({ model: "scripted", ...odd });
  expect(response.status).toBe(200);
  const ignored = response.headers.get("x-trunkline-ignored")?.split(",") ?? [];
  expect(ignored.toSorted()).toEqual(["messages[0].weight", "metadata", "user"]);
  await response.body?.cancel();
});
