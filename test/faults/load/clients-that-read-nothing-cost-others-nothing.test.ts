import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as pass } from "node:timers/promises";
import { expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { scriptedChat } from "../../harness/load/scripted-chat.ts";
import type { GatewayProcess } from "../../harness/start-trunkline.ts";
import { onlyInWholeLane } from "../lane.ts";
import { sized, testTimeoutMs } from "./lane.ts";

/**
 * Few whose answers come as fast as they can, so that all buffers on their way are full; and many at the pace of a model,
 * of whom one alone would cost nothing.
 */
const silences = [
  { silent: 50, delayMs: 0 },
  { silent: sized({ fast: 200, whole: 1_000 }), delayMs: 100 },
];
/** They come in small groups: a thousand requests in one moment are a test of something else. */
const comeTogether = 10;
const betweenMs = 50;
const good = sized({ fast: 50, whole: 200 });
/** More than all buffers on the way to a client hold. */
const tokensForSilent = 20_000;

const mib = 1024 * 1024;
/** What a gateway may keep for one stream that nobody reads: what it lets the client owe, and what that costs to hold. */
const keptPerStreamBytesMax = 1 * mib;
/** What a gateway grows by under any load, whatever it keeps. */
const heapSlackBytes = 160 * mib;

test
  .skipIf(lentOnly("nats", "redis") || process.platform !== "linux" || onlyInWholeLane("clients that read nothing"))
  .for(silences)(
  `$silent clients that read nothing beside ${good} good ones: those are served whole, and the gateway keeps a bounded amount for each`,
  { timeout: testTimeoutMs },
  async ({ silent, delayMs }) => {
    await using fleet = await BalancedFleet.start({
      gateways: 1,
      machines: { attic: ["scripted"], cellar: ["scripted"] },
    });
    const [gateway] = fleet.gateways;
    if (gateway === undefined) throw new Error("no gateway");
    const wish = { wish: () => ({ tokens: 40, delayMs: 10 }), pace: { atOnce: good }, count: good };
    const alone = await fleet.load({ ...wish, baseUrl: gateway.baseUrl }).over;
    const beforeBytes = await residentBytes(gateway);
    const sockets: Socket[] = [];
    while (sockets.length < silent) {
      const together = Array.from({ length: comeTogether }, () =>
        askAndNeverRead(gateway, { key: fleet.key, delayMs }),
      );
      sockets.push(...(await Promise.all(together)));
      await pass(betweenMs);
    }
    let peakBytes = 0;
    const look = async (): Promise<void> => {
      peakBytes = Math.max(peakBytes, await residentBytes(gateway));
    };
    const watching = setInterval(() => void look(), 100);
    const beside = await fleet.load({ ...wish, baseUrl: gateway.baseUrl, count: 5 * good }).over;
    clearInterval(watching);
    for (const socket of sockets) socket.destroy();
    const perStream = (peakBytes - beforeBytes) / silent;
    console.log(
      [
        alone.summary("good ones alone"),
        beside.summary(`good ones beside ${silent} that read nothing`),
        `the gateway grew from ${Math.round(beforeBytes / mib)} to ${Math.round(peakBytes / mib)} MiB, ` +
          `${Math.round(perStream / 1024)} KiB for each`,
      ].join("\n"),
    );
    expect(beside.told).toEqual({});
    expect(beside.of("exact")).toBe(5 * good);
    expect(peakBytes - beforeBytes).toBeLessThan(silent * keptPerStreamBytesMax + heapSlackBytes);
  },
);

/** A client whose request is sent and whose socket is never read from. */
async function askAndNeverRead(
  gateway: GatewayProcess,
  { key, delayMs }: { readonly key: string; readonly delayMs: number },
): Promise<Socket> {
  const { hostname, port, pathname } = new URL(`${gateway.baseUrl}/chat/completions`);
  const { body } = scriptedChat({ tokens: tokensForSilent, delayMs });
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => undefined);
  socket.pause();
  await once(socket, "connect");
  const head = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  return socket;
}

async function residentBytes(gateway: GatewayProcess): Promise<number> {
  const [line] = await gateway.logLines();
  const status = await readFile(`/proc/${String(line?.["pid"])}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}
