import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sleep, systemClock } from "#shared/process/clock.ts";
import { errorIn } from "../harness/endpoint.ts";
import type { EventStream } from "../harness/event-stream.ts";
import { Site } from "../harness/start-site.ts";
import { until } from "../harness/until.ts";

/** Both ends of a tunnel wait for so long, and a busy host adds to it. */
const toldWithinMs = 6_000 + 2_000;
const backWithinMs = 10_000;

/** A site, a machine that joined it, and streams that the machine answers. */
class TunnelledSite implements AsyncDisposable {
  readonly site: Site;
  readonly #folder: string;
  #streams = 0;

  private constructor(site: Site, folder: string) {
    this.site = site;
    this.#folder = folder;
  }

  static async start(): Promise<TunnelledSite> {
    const [site, folder] = await Promise.all([Site.start(), mkdtemp(join(tmpdir(), "trunkline-machine-"))]);
    const started = new TunnelledSite(site, folder);
    const line = await site.joinLine("attic");
    await site.startAgent(["--join", line], { TRUNKLINE_STATE_DIR: folder, TRUNKLINE_SCRIPTED_MODELS: "scripted" });
    await started.serves();
    return started;
  }

  /** Waits until the machine answers a chat. */
  async serves(): Promise<void> {
    const says = "/script tokens=1 nonce=back";
    const look = async () => (await this.site.endpoint.chat({ model: "scripted", says })).status === 200;
    await until(look, { what: "the machine to serve", timeoutMs: backWithinMs, intervalMs: 50 });
  }

  /** Opens a stream with a token each 20 ms, and returns it when the first ones have come. */
  async openStream(tokens = 200): Promise<{ stream: EventStream; text: string }> {
    this.#streams += 1;
    const nonce = `s${this.#streams}`;
    const says = `/script tokens=${tokens} delay_ms=20 nonce=${nonce}`;
    const stream = await this.site.endpoint.stream({ model: "scripted", says });
    await until(() => stream.text.includes(`${nonce}-20 `), { what: "the first tokens" });
    return { stream, text: Array.from({ length: tokens }, (_, index) => `${nonce}-${index} `).join("") };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true });
  }
}

/** What befalls the network between the machine and its site, and how it ends. */
const cuts = {
  "a reset, and no new connection": {
    begin({ proxy }: Site) {
      proxy.refuse(true);
      proxy.reset();
    },
    end: ({ proxy }: Site) => proxy.refuse(false),
  },
  "packets that do not arrive": {
    begin({ proxy }: Site) {
      proxy.hold("there");
      proxy.hold("back");
    },
    end: ({ proxy }: Site) => proxy.release(),
  },
};

let shared: TunnelledSite;
beforeAll(async () => {
  shared = await TunnelledSite.start();
});
afterAll(() => shared[Symbol.asyncDispose]());

describe.concurrent("for 20 s", () => {
  test.each(Object.entries(cuts))(
    "%s is told in the stream, and the machine comes back by itself",
    async (_, cut) => {
      await using own = await TunnelledSite.start();
      const { stream, text } = await own.openStream(3_000);
      cut.begin(own.site);
      const begunMs = performance.now();
      const lasts = sleep(systemClock, 20_000);
      expect(await stream.over).toBe("closed");
      expect(performance.now() - begunMs).toBeLessThan(toldWithinMs);
      expect(errorIn(stream.events.at(-1) ?? "").code).toBe("agent_disconnected");
      expect(text.startsWith(stream.text)).toBe(true);
      await lasts;
      cut.end(own.site);
      await own.serves();
    },
    60_000,
  );
});

test("the client of a site that dies in mid-stream is told, and the machine comes back by itself", async () => {
  const { stream, text } = await shared.openStream();
  await shared.site.up.kill();
  expect(await stream.over).toBe("broken");
  expect(text.startsWith(stream.text)).toBe(true);
  await shared.site.restart();
  await shared.serves();
});

test("a site that is told to stop finishes the stream first, and the machine comes back by itself", async () => {
  const { stream, text } = await shared.openStream();
  shared.site.up.askToStop();
  expect(await stream.over).toBe("closed");
  expect([stream.text, stream.done]).toEqual([text, true]);
  expect(await shared.site.up.exit()).toBe(0);
  await shared.site.restart();
  await shared.serves();
});
