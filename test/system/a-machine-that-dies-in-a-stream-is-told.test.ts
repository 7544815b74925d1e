import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errorIn, errorOf, type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

const endsWithinMs = 5_000;
const token = (index: number): string => `abc-${index} `;

describe.skipIf(lentOnly("nats", "redis"))("when the process on a machine is gone in the middle of an answer", () => {
  let fleet: Fleet;
  let endpoint: Endpoint;
  beforeEach(async () => {
    fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    ({ endpoint } = fleet);
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  test("killed, a stream has its exact beginning, then an error, and does not look finished", async () => {
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=100000 delay_ms=10 nonce=abc" });
    const whole = endpoint.chat({ model: "scripted", says: "/script tokens=100000 delay_ms=10" });
    await until(() => stream.text.includes(token(20)), { what: "the first tokens" });
    await fleet.agent("attic").kill();
    const killedAtMs = performance.now();
    expect(await stream.over).toBe("closed");
    const answer = await whole;
    expect(performance.now() - killedAtMs).toBeLessThan(endsWithinMs);

    expect(errorIn(stream.events.at(-1) ?? "")).toMatchObject({ type: "server_error", code: "agent_disconnected" });
    expect(stream.events).not.toContain("[DONE]");
    const count = stream.text.trimEnd().split(" ").length;
    expect(stream.text).toBe(Array.from({ length: count }, (_, index) => token(index)).join(""));
    expect(answer.status).toBeGreaterThanOrEqual(502);
    expect((await errorOf(answer)).code).toMatch(/^agent_/);
  });

  test("exiting by itself at a token, the client has all tokens before it or fewer, then an error", async () => {
    const stream = await endpoint.stream({
      model: "scripted",
      says: "/script tokens=9 delay_ms=20 exit_at=5 nonce=abc",
    });
    const begunMs = performance.now();
    expect(await stream.over).toBe("closed");
    expect(performance.now() - begunMs).toBeLessThan(endsWithinMs);
    expect([0, 1, 2, 3, 4].map(token).join("")).toContain(stream.text);
    expect(errorIn(stream.events.at(-1) ?? "").code).toBe("agent_disconnected");
    expect(await fleet.agent("attic").exit()).toBe(1);
  });
});

test("a runtime that fails in a stream is told as an error event after exactly what it said", async () => {
  await using up = await startUp();
  const says = "/script tokens=9 delay_ms=5 fail_at=3 nonce=abc";
  const stream = await up.endpoint.stream({ model: "scripted", says });
  expect(await stream.over).toBe("closed");
  expect(stream.text).toBe([0, 1, 2].map(token).join(""));
  expect(errorIn(stream.events.at(-1) ?? "").code).toBe("upstream_error");
  const whole = await up.endpoint.chat({ model: "scripted", says });
  expect([whole.status, (await errorOf(whole)).code]).toEqual([502, "upstream_error"]);
});
