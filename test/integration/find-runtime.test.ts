import { createServer } from "node:http";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { detectMs, findRuntime, type RuntimeKind } from "../../services/agent/runtimes/detect.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { freePort } from "../harness/free-port.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";

let ollama: FakeOllama;
let nowhere: string;

beforeEach(async () => {
  ollama = await FakeOllama.start();
  nowhere = `http://127.0.0.1:${await freePort()}`;
});
afterEach(() => ollama.stop());

async function found(wanted: RuntimeKind, url: string | undefined, fallbackToScripted = false) {
  const detection = await findRuntime({ wanted, url, fallbackToScripted, clock: systemClock });
  return detection.kind === "found" ? detection.runtime.name : detection.reason;
}

describe("looking for a runtime", () => {
  test("finds an Ollama that answers, whether or not a demonstration would do", async () => {
    expect(await found("auto", ollama.url)).toBe("ollama");
    expect(await found("auto", ollama.url, true)).toBe("ollama");
    expect(await found("ollama", ollama.url)).toBe("ollama");
  });

  test("falls back to the demonstration only when asked to, and never from an address or an Ollama that was named", async () => {
    // Whoever runs the tests may have an Ollama at its usual address.
    expect(["scripted", "ollama"]).toContain(await found("auto", undefined, true));
    expect(await found("auto", nowhere, true)).toBe(`no Ollama answers at ${nowhere}`);
    expect(await found("auto", nowhere)).toBe(`no Ollama answers at ${nowhere}`);
    expect(await found("ollama", nowhere, true)).toBe(`no Ollama answers at ${nowhere}`);
  });

  test("takes the demonstration when it is wanted, with the models that were chosen", async () => {
    const options = { url: ollama.url, fallbackToScripted: false, clock: systemClock };
    const detection = await findRuntime({ wanted: "scripted", scriptedModels: ["scripted:mlx"], ...options });
    if (detection.kind === "none") throw new Error("nothing was found");
    expect(await detection.runtime.catalogue(new AbortController().signal)).toMatchObject([{ id: "scripted:mlx" }]);
    expect(ollama.requests).toEqual([]);
  });

  test("gives up on a server that says nothing in time, and leaves nothing open", async () => {
    ollama.silent = true;
    const clock = new TurnableClock();
    const looking = findRuntime({ wanted: "auto", url: ollama.url, fallbackToScripted: false, clock });
    await until(() => ollama.requests.length > 0, { what: "the question" });
    clock.advance(detectMs);
    expect(await looking).toMatchObject({ kind: "none" });
    expect(clock.timersWaiting).toBe(0);
    await until(() => ollama.requests[0]?.closedEarly, { what: "the closed request" });
  });

  test("takes no other server for an Ollama", async () => {
    const other = createServer((_, response) => response.end("<html>Hello</html>")).listen(0, "127.0.0.1");
    await once(other, "listening");
    const address = other.address();
    if (address === null || typeof address === "string") throw new Error("no address");
    const url = `http://127.0.0.1:${address.port}`;
    expect(await found("auto", url)).toBe(`no Ollama answers at ${url}`);
    other.close();
  });

  test("ends with the signal of whoever looks", async () => {
    ollama.silent = true;
    const abort = new AbortController();
    const options = { fallbackToScripted: true, clock: systemClock, signal: abort.signal };
    const looking = findRuntime({ wanted: "auto", url: ollama.url, ...options });
    const reason = new Error("stopping");
    abort.abort(reason);
    await expect(looking).rejects.toBe(reason);
  });
});
