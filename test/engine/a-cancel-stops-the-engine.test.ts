import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../harness/until.ts";
import { noEngine, only, saidIn, TinyRuntime } from "./tiny-runtime.ts";

const signal = new AbortController().signal;

describe.skipIf(noEngine)("a cancel stops the engine", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const endless = { name: "endless", scripts: { "<|assistant|>": ["tick ", "tock "] }, endless: true };
    tiny = await TinyRuntime.start({ ...endless, contextTokens: 16_384 }, { slots: 2 });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  const working = async (): Promise<number> => (await tiny.runtime.working?.(signal)) ?? -1;

  test("a cancel stops the engine in the middle of an answer: it goes idle, and the next is answered", async () => {
    const leaving = new AbortController();
    const gone = new Error("gone");
    const answer = tiny.batches({ signal: leaving.signal });
    await answer.next();
    expect(await working()).toBe(1);
    leaving.abort(gone);
    await expect(Array.fromAsync(answer)).rejects.toBe(gone);
    expect(await working()).toBe(0);
    expect(saidIn(await tiny.events({ max_tokens: 2 }))).toBe("tick tock ");
  });

  test("a cancel stops the engine while it still reads the prompt", async () => {
    const leaving = new AbortController();
    let batches = 0;
    const onProgress = (silence?: string): void => {
      if (silence !== "prefill") return;
      batches += 1;
      leaving.abort(new Error("gone"));
    };
    const long = tiny.events({ says: "x".repeat(8_000), signal: leaving.signal, onProgress });
    await expect(long).rejects.toThrow("gone");
    expect([batches, await working()]).toEqual([1, 0]);
  });

  test("a cancel stops the engine when nobody asks for more, as with a signal", async () => {
    for await (const _ of tiny.batches()) break;
    expect(await working()).toBe(0);
  });

  test("a cancel stops the engine before it has begun", async () => {
    await expect(tiny.events({ signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
    expect(await working()).toBe(0);
  });

  test("two answers run at once, and a third is refused until one has ended", async () => {
    const leaving = new AbortController();
    const [one, two] = [tiny.batches({ says: "1" }), tiny.batches({ says: "2", signal: leaving.signal })];
    await Promise.all([one.next(), two.next()]);
    await expect(tiny.events({ says: "3" })).rejects.toMatchObject({ code: "server_is_overloaded" });
    expect(await working()).toBe(2);
    leaving.abort(new Error("gone"));
    await expect(Array.fromAsync(two)).rejects.toThrow("gone");
    expect(saidIn(await tiny.events({ says: "3", max_tokens: 1 }))).toBe("tick ");
    await one.return(undefined);
    expect(await working()).toBe(0);
  });

  test("closing ends what runs, and says why", async () => {
    const other = await TinyRuntime.start({
      name: "closing",
      scripts: { "<|assistant|>": ["tick ", "tock "] },
      endless: true,
      contextTokens: 16_384,
    });
    const running = other.events();
    running.catch(() => undefined);
    await until(async () => (await other.runtime.working?.(signal)) === 1, { what: "an answer to run" });
    await other[Symbol.asyncDispose]();
    expect(await other.runtime.working?.(signal)).toBe(0);
    await expect(running).rejects.toMatchObject({ code: "shutting_down" });
  });

  test("a long prompt is told to be read, batch by batch", async () => {
    let batches = 0;
    const events = await tiny.events({
      says: "y".repeat(2_000),
      max_tokens: 1,
      onProgress: (silence) => void (silence === "prefill" && (batches += 1)),
    });
    expect(only(events, "usage")?.promptTokens).toBe(2_003);
    expect(batches).toBeGreaterThan(2);
  });
});
