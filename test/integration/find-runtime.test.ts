import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { detectMs, runtimeSources, type Wanted } from "../../services/agent/models/detect.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { freePort } from "../harness/free-port.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";

const { signal } = new AbortController();
let ollama: FakeOllama;
let nowhere: string;

beforeEach(async () => {
  ollama = await FakeOllama.start();
  nowhere = `http://127.0.0.1:${await freePort()}`;
});
afterEach(() => ollama.stop());

/** What one look at each place finds. */
async function found(kind: Wanted["kind"], ...urls: string[]): Promise<string[]> {
  const sights = await Promise.all(
    runtimeSources({ kind, urls, clock: systemClock }).map((source) => source.look(signal)),
  );
  for (const sight of sights) if (typeof sight !== "string") await sight.close?.();
  return sights.map((sight) => (typeof sight === "string" ? sight : sight.name));
}

describe("looking for runtimes", () => {
  test("finds an Ollama where it was said to be, by its kind or by itself", async () => {
    expect(await found("auto", ollama.url)).toEqual(["ollama"]);
    expect(await found("ollama", ollama.url)).toEqual(["ollama"]);
    expect(await found("auto", `${ollama.url}/v1`)).toEqual(["ollama"]);
  });

  test("finds several at several places, and nothing where nothing is", async () => {
    await using other = await FakeOllama.start();
    expect(await found("auto", ollama.url, nowhere, other.url)).toEqual(["ollama", "nothing", "ollama"]);
  });

  test("looks where runtimes usually are when nobody says where", () => {
    const usual = (kind: Wanted["kind"]) =>
      runtimeSources({ kind, urls: [], clock: systemClock }).map(({ place }) => place);
    expect(usual("auto")).toEqual([
      "http://127.0.0.1:11434",
      "http://127.0.0.1:8000",
      "http://127.0.0.1:8080",
      "http://127.0.0.1:1234",
    ]);
    expect(usual("ollama")).toEqual(["http://127.0.0.1:11434"]);
    expect(usual("vllm")).toEqual(["http://127.0.0.1:8000"]);
  });

  test("shows the operator's key to the places that he named, and to no stranger at a usual one", async () => {
    const shown: (string | undefined)[] = [];
    const stranger = createServer(({ headers }, response) => {
      shown.push(headers.authorization);
      response.writeHead(404).end();
    }).listen(0, "127.0.0.1");
    await once(stranger, "listening");
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
    const look = async (where: Pick<Wanted, "urls" | "usual">) => {
      const [source] = runtimeSources({ kind: "auto", apiKey: "secret", clock: systemClock, ...where });
      await source?.look(signal);
      return new Set(shown.splice(0));
    };
    expect(await look({ urls: [], usual: [url] })).toEqual(new Set([undefined]));
    expect(await look({ urls: [url] })).toEqual(new Set(["Bearer secret"]));
    stranger.close();
  });

  test("gives up on a server that says nothing in time, and leaves nothing open", async () => {
    ollama.silent = true;
    const clock = new TurnableClock();
    const [source] = runtimeSources({ kind: "auto", urls: [ollama.url], clock });
    const looking = source?.look(signal).catch(() => "given up");
    await until(() => ollama.requests.length > 0, { what: "the question" });
    clock.advance(detectMs);
    expect(await looking).toBe("given up");
    expect(clock.timersWaiting).toBe(0);
    await until(() => ollama.requests[0]?.closedEarly, { what: "the closed request" });
  });

  test("takes no other server for a runtime", async () => {
    const other = createServer((_, response) => response.end("<html>Hello</html>")).listen(0, "127.0.0.1");
    await once(other, "listening");
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    expect(await found("auto", url)).toEqual(["nothing"]);
    expect(await found("ollama", url)).toEqual(["nothing"]);
    other.close();
  });

  test("ends with the signal of whoever looks", async () => {
    ollama.silent = true;
    const abort = new AbortController();
    const [source] = runtimeSources({ kind: "ollama", urls: [ollama.url], clock: systemClock });
    const looking = source?.look(abort.signal);
    const reason = new Error("stopping");
    abort.abort(reason);
    await expect(looking).rejects.toBe(reason);
  });
});
