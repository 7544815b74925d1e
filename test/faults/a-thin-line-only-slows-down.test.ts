import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { watchMachines } from "../harness/machine-states.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { lane } from "./lane.ts";
import { complaintsAbout } from "./oracle.ts";
import { ScriptedRequest } from "./scripted-request.ts";

interface ThinLine {
  readonly streams: number;
  /** Of each stream. */
  readonly tokens: number;
  /** Drain rate from the machine to NATS, in KB/s. */
  readonly rate: number;
  /** For the first text of one more chat beside the streams. */
  readonly startsWithinMs: number;
  /** Between two tokens of a stream; without it they come as fast as the machine can. */
  readonly delayMs?: number;
  /**
   * Bytes on the line for a byte of text, at most. A line that is not full carries each token by itself, and short
   * answers have few bytes beside their first and last frame.
   */
  readonly bytesPerText?: number;
  readonly latencyMs?: number;
  /** Breaks the connection once, under all streams. */
  readonly isCut?: boolean;
  /** Runs in the fast lane too. */
  readonly fast?: boolean;
}

const lines: readonly ThinLine[] = [
  { streams: 8, tokens: 60, rate: 32, startsWithinMs: 2_000, bytesPerText: 3, fast: true },
  { streams: 8, tokens: 2_000, rate: 125, startsWithinMs: 2_000, bytesPerText: 1.4 },
  { streams: 60, tokens: 200, rate: 32, startsWithinMs: 4_000, bytesPerText: 2.2 },
  { streams: 12, tokens: 1_000, rate: 125, startsWithinMs: 2_000, delayMs: 10 },
  { streams: 8, tokens: 4_000, rate: 1_000, startsWithinMs: 2_000 },
  { streams: 60, tokens: 150, rate: 125, startsWithinMs: 2_000, delayMs: 10, bytesPerText: 3.2 },
  { streams: 60, tokens: 40, rate: 32, startsWithinMs: 4_000, delayMs: 10, bytesPerText: 4 },
  { streams: 60, tokens: 100, rate: 125, startsWithinMs: 2_000, delayMs: 10, isCut: true },
  { streams: 60, tokens: 30, rate: 32, startsWithinMs: 4_000, delayMs: 10, isCut: true },
  { streams: 12, tokens: 500, rate: 125, startsWithinMs: 2_500, delayMs: 10, latencyMs: 150 },
];

function titleOf({ streams, rate, delayMs, isCut, latencyMs }: ThinLine): string {
  const pace = delayMs === undefined ? "at full speed" : "of 100 tokens/s";
  const way = latencyMs === undefined ? "" : ` that is ${latencyMs} ms long`;
  return `${streams} streams ${pace} over ${rate} KB/s${way}${isCut === true ? " that is cut once" : ""}`;
}

const chosen = lines.filter(({ fast }) => lane.isWhole || fast === true);
const timeoutMs = 150_000;
/** As much as a shallow home router keeps. */
const bufferBytesMax = 64 * 1024;
/** Time that a busy host adds to a promised time. */
const hostAddsMs = 750;

test.skipIf(lentOnly("nats", "redis")).each(chosen.map((line) => [titleOf(line), line] as const))(
  "%s of a machine's thin uplink stay exact, and the machine stays online",
  { timeout: timeoutMs },
  async (title, line) => {
    await using fleet = await startFleet({
      machines: { attic: { models: ["scripted"], env: { TRUNKLINE_SLOTS: "80" } } },
      proxied: ["machines"],
      env: { TRUNKLINE_TIME_SCALE: String(lane.scale), TRUNKLINE_LOG_LEVEL: "debug" },
    });
    const proxy = fleet.wayOf("machines", "attic");
    proxy.bufferBytesMax = bufferBytesMax;
    proxy.bytesPerSecond.there = line.rate * 1_000;
    const others: ScriptedRequest[] = [];
    if (line.latencyMs !== undefined) {
      proxy.latencyMs = line.latencyMs;
      proxy.cut();
      await fleet.agent("attic").logged("connected to NATS again");
      const serves = async (): Promise<boolean> => {
        others.push(ask(fleet, `first-${others.length}`, { tokens: 1, delayMs: 0 }));
        return (await others.at(-1)?.over) === "answered";
      };
      await until(serves, { what: "the machine to serve over its longer line" });
      others.splice(0, others.length - 1);
    }
    const losses = async (): Promise<number> =>
      (await fleet.agent("attic").logLines()).filter(({ msg }) => msg.includes("NATS is lost")).length;
    const lossesBefore = await losses();
    const watch = watchMachines(fleet.gateway.operationsUrl);

    const begunMs = performance.now();
    const bytesBefore = proxy.bytesPassed("there");
    const { tokens, delayMs = 0 } = line;
    const streams = Array.from({ length: line.streams }, (_, place) =>
      ask(fleet, `thin-${place}`, { tokens, delayMs }),
    );
    const flowing = (): boolean => streams.every(({ text, outcome }) => text !== "" || outcome !== undefined);
    await until(flowing, { what: "every stream to begin", timeoutMs: 30_000 });
    if (line.isCut === true) proxy.cut();
    const isOver = (): boolean => streams.every(({ outcome }) => outcome !== undefined);
    while (!isOver()) {
      const other = ask(fleet, `other-${others.length}`, { tokens: 3, delayMs: 0 });
      others.push(other);
      await other.over;
      const sinceMs = performance.now();
      await until(() => isOver() || performance.now() - sinceMs > 1_000, { what: "a second", timeoutMs: 2_000 });
    }
    const tookMs = performance.now() - begunMs;
    const lineBytes = proxy.bytesPassed("there") - bytesBefore;
    const seen = await watch.end();

    const asked = [...streams, ...others];
    const textBytes = asked.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    const firsts = (of: readonly ScriptedRequest[]): number =>
      Math.max(...of.map(({ firstTextAtMs = Number.NaN, sentAtMs }) => firstTextAtMs - sentAtMs));
    console.log(
      [
        `${title}: ${(tookMs / 1_000).toFixed(1)} s, ${Math.round(lineBytes / (tookMs / 1_000))} bytes/s`,
        `${(lineBytes / textBytes).toFixed(1)} bytes on the line per byte of text`,
        `first text of the streams within ${Math.round(firsts(streams))} ms, of ${others.length} more chats within ${Math.round(firsts(others))} ms`,
        `longest pause ${Math.round(Math.max(...streams.map(({ longestPauseMs }) => longestPauseMs)))} ms`,
        `outcomes: ${[...new Set(asked.map(({ outcome }) => outcome))].join(", ")}; offline in ${seen.offline} of ${seen.looks} looks`,
      ].join("\n  "),
    );
    expect(asked.map(({ outcome }) => outcome)).toEqual(asked.map(() => "answered"));
    expect(complaintsAbout({ clients: asked, gateways: [], machines: fleet.wire.jobs })).toEqual([]);
    expect(seen.offline).toBe(0);
    expect(await losses()).toBe(lossesBefore + (line.isCut === true ? 1 : 0));
    expect(firsts(others)).toBeLessThan(line.startsWithinMs + hostAddsMs);
    expect(lineBytes / textBytes).toBeLessThan(line.bytesPerText ?? Infinity);
  },
);

function ask(fleet: Fleet, nonce: string, script: { tokens: number; delayMs: number }): ScriptedRequest {
  return new ScriptedRequest(fleet.endpoint, { nonce, model: "scripted", script, stream: true });
}
