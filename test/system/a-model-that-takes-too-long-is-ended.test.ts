import { expect, test } from "vitest";
import { errorIn, errorOf } from "../harness/endpoint.ts";
import { startUp } from "../harness/start-trunkline.ts";

const waits = { TRUNKLINE_FIRST_TOKEN_MS: "400", TRUNKLINE_NO_PROGRESS_MS: "400", TRUNKLINE_JOB_TOTAL_MS: "3000" };

test("the waits for a model are the operator's to choose, and each is named when it ends a request", async () => {
  await using up = await startUp(waits);
  const { endpoint } = up;
  const silent = await endpoint.chat({ model: "scripted", says: "/script tokens=1 first_ms=60000" });
  expect([silent.status, silent.headers.get("x-should-retry")]).toEqual([504, "false"]);
  expect(await errorOf(silent)).toMatchObject({
    code: "upstream_timeout",
    message: expect.stringContaining("firstTokenMs"),
  });

  const stalled = await endpoint.stream({ model: "scripted", says: "/script tokens=5 stall_at=2 nonce=abc" });
  expect(await stalled.over).toBe("closed");
  expect(stalled.text).toBe("abc-0 abc-1 ");
  expect(errorIn(stalled.events.at(-1) ?? "").message).toContain("noProgressMs");

  const endless = await endpoint.chat({ model: "scripted", says: "/script tokens=1000 delay_ms=20" });
  expect((await errorOf(endless)).message).toContain("jobTotalMs");
});
