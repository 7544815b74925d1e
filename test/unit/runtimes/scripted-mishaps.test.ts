import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { chatOn, textOf } from "../../harness/ask-runtime.ts";
import { until } from "../../harness/until.ts";

/** Starts a chat and keeps what was said until it ended, and how. */
function listen(says: string, options: { signal?: AbortSignal; exit?: (code: number) => void } = {}) {
  const runtime = scriptedRuntime({ clock: systemClock, exit: options.exit });
  const events: AnswerEvent[] = [];
  const ended = (async () => {
    const batches = chatOn(runtime, { model: "scripted", says }, options.signal && { signal: options.signal });
    for await (const batch of batches) events.push(...batch);
  })();
  return { events, ended };
}

describe("a scripted mishap", () => {
  test("fails exactly before its token, and never finishes", async () => {
    const { events, ended } = listen("/script tokens=9 nonce=a fail_at=2");
    await expect(ended).rejects.toMatchObject({ code: "upstream_error" });
    expect(textOf(events)).toBe("a-0 a-1 ");
    expect(events.every(({ kind }) => kind === "text")).toBe(true);
  });

  test("can come before the first token and after the last", async () => {
    await expect(listen("/script fail_at=0").ended).rejects.toBeInstanceOf(Fault);
    const last = listen("/script tokens=2 nonce=a fail_at=2");
    await expect(last.ended).rejects.toBeInstanceOf(Fault);
    expect(textOf(last.events)).toBe("a-0 a-1 ");
  });

  test("stalls until the chat is aborted, and then ends at once", async () => {
    const abort = new AbortController();
    const { events, ended } = listen("/script tokens=9 nonce=a stall_at=3", { signal: abort.signal });
    await until(() => textOf(events) === "a-0 a-1 a-2 ", { what: "the tokens before the stall" });
    const reason = new Error("nobody waits");
    abort.abort(reason);
    await expect(ended).rejects.toBe(reason);
    expect(events).toHaveLength(3);
  });

  test("ends its process with code 1", async () => {
    const codes: number[] = [];
    const { events, ended } = listen("/script tokens=9 exit_at=1 nonce=a", { exit: (code) => void codes.push(code) });
    await expect(ended).rejects.toBeInstanceOf(Fault);
    expect([codes, textOf(events)]).toEqual([[1], "a-0 "]);
  });

  test("is the first one, where a script names several", async () => {
    await expect(listen("/script tokens=9 stall_at=5 fail_at=2").ended).rejects.toMatchObject({
      code: "upstream_error",
    });
  });
});

test("a chat whose signal has aborted already says nothing", async () => {
  const reason = new Error("nobody waits");
  const { events, ended } = listen("/script tokens=9", { signal: AbortSignal.abort(reason) });
  await expect(ended).rejects.toBe(reason);
  expect(events).toEqual([]);
});
