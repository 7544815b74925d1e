import { describe, expect, test } from "vitest";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { chatOn, textOf } from "../../harness/ask-runtime.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

/** Starts a chat and notes when each token was said. */
function listen(says: string, signal?: AbortSignal) {
  const clock = new TurnableClock();
  const said: { token: string; atMs: number }[] = [];
  let progress = 0;
  const wish = { model: "scripted", says };
  const options = { onProgress: () => void (progress += 1), ...(signal && { signal }) };
  const ended = (async () => {
    for await (const batch of chatOn(scriptedRuntime({ clock }), wish, options)) {
      for (const event of batch) if (event.kind === "text") said.push({ token: textOf([event]), atMs: clock.now() });
    }
  })();
  return { clock, said, ended, progress: () => progress };
}

describe("a script's pace", () => {
  test("is kept from the start, so that no token is late because one before it was", async () => {
    const { clock, said, ended } = listen("/script tokens=4 nonce=a first_ms=100 delay_ms=20");
    await clock.advanceAwaiting(200);
    await ended;
    expect(said.map(({ atMs }) => atMs)).toEqual([100, 120, 140, 160]);
  });

  test("makes good what a stalled process missed, in one batch", async () => {
    const { clock, said, ended } = listen("/script tokens=4 delay_ms=20");
    await clock.advanceAwaiting(1);
    clock.advance(1_000);
    await ended;
    expect(said.map(({ atMs }) => atMs)).toEqual([0, 1_001, 1_001, 1_001]);
  });

  test("shows no progress during the silence before the first token", async () => {
    const { clock, said, ended, progress } = listen("/script tokens=1 first_ms=5000");
    await clock.advanceAwaiting(4_999);
    expect([said.length, progress()]).toEqual([0, 0]);
    await clock.advanceAwaiting(1);
    await ended;
    expect([said.length, progress()]).toEqual([1, 1]);
  });

  test("leaves no timer behind when the chat is aborted between two tokens", async () => {
    const abort = new AbortController();
    const { clock, said, ended } = listen("/script tokens=9 delay_ms=1000", abort.signal);
    await clock.advanceAwaiting(1_500);
    const reason = new Error("nobody waits");
    abort.abort(reason);
    await expect(ended).rejects.toBe(reason);
    expect([said.length, clock.timersWaiting]).toEqual([2, 0]);
  });
});
