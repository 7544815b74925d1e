import { expect, test } from "vitest";
import { until } from "../../harness/until.ts";

test("hands over what the look found", async () => {
  let looks = 0;
  const seen = await until(() => (++looks < 3 ? undefined : `look ${looks}`), { what: "the third look" });
  expect(seen).toBe("look 3");
});

test("zero and the empty string are states like others", async () => {
  expect(await until(() => 0, { what: "a number" })).toBe(0);
  expect(await until(() => "", { what: "a text" })).toBe("");
});

test("fails with what was awaited and for how long", async () => {
  await expect(until(() => false, { what: "the machine to leave", timeoutMs: 20 })).rejects.toThrow(
    "Waited 20 ms in vain for the machine to leave",
  );
});

test("names the failure of the last look and keeps it as the cause", async () => {
  const refusal = new Error("connection refused");
  const waiting = until(() => Promise.reject(refusal), { what: "the server", timeoutMs: 20 });
  await expect(waiting).rejects.toThrow("in vain for the server; the last look failed: connection refused");
  await expect(waiting).rejects.toMatchObject({ cause: refusal });
});

test("cuts a look that hangs", async () => {
  let cut = false;
  const hang = (signal: AbortSignal): Promise<boolean> => {
    signal.addEventListener("abort", () => (cut = true));
    return new Promise(() => {});
  };
  await expect(until(hang, { what: "an answer", timeoutMs: 20 })).rejects.toThrow("it did not come back");
  expect(cut).toBe(true);
});

test("looks once more after a machine that stood still", async () => {
  let looks = 0;
  const look = (): boolean => {
    looks += 1;
    if (looks === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40);
    return looks > 1;
  };
  expect(await until(look, { what: "the second look", timeoutMs: 20 })).toBe(true);
});
