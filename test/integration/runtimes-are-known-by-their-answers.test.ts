import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock as clock } from "#shared/process/clock.ts";
import { agentConfig } from "../../services/agent/config.ts";
import { detectMs, runtimeKinds, runtimeSources, type WantedRuntimes } from "../../services/agent/models/detect.ts";
import { recogniseOllama } from "../../services/agent/runtimes/ollama/ollama.ts";
import { recogniseOpenAiServer } from "../../services/agent/runtimes/openai/recognise-openai-server.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { FakeLmStudio } from "../harness/fake-lm-studio.ts";
import { FakeMlxLm } from "../harness/fake-mlx-lm.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { FakeOtherServer } from "../harness/fake-other-server.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { serverOfTest } from "../harness/server-of-test.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";

const { signal } = new AbortController();

type Options = Omit<Parameters<typeof recogniseOpenAiServer>[1], "signal">;

/** What a server is taken for. */
async function recognised(url: string, options: Options & { apiKey?: string } = {}): Promise<string> {
  const { apiKey, ...rest } = options;
  const runtime = await recogniseOpenAiServer({ url, apiKey, clock }, { ...rest, signal });
  await runtime?.close?.();
  return runtime?.name ?? "nothing";
}

/** A server that says this to everything, and what it was asked. */
async function serverSaying(listener: RequestListener): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const url = await serverOfTest((request, response) => {
    asked.push(request.url ?? "");
    listener(request, response);
  });
  return { url, asked };
}

const fakes: Readonly<Record<string, () => Promise<AsyncDisposable & { url: string }>>> = {
  vllm: () => FakeVllm.start(),
  "llama-server": () => FakeLlamaServer.start(),
  "lm-studio": () => FakeLmStudio.start(),
  "mlx-lm": () => FakeMlxLm.start(),
};

describe("a server is known by what it answers", () => {
  test.each(Object.keys(fakes))("%s is known by what it answers", async (kind) => {
    await using fake = await fakes[kind]?.();
    expect(await recognised(fake?.url ?? "")).toBe(kind);
    expect(await recognised(fake?.url ?? "", { allowOther: true })).toBe(kind);
    expect(await recogniseOllama({ url: fake?.url ?? "", clock }, signal)).toBeUndefined();
  });

  test("llama-server is known while it loads its model, and offers it when it has", async () => {
    await using fake = await FakeLlamaServer.start();
    fake.loading = true;
    const runtime = await recogniseOpenAiServer({ url: fake.url, clock }, { signal });
    expect(runtime?.name).toBe("llama-server");
    expect(await runtime?.catalogue(signal)).toEqual([]);
    fake.loading = false;
    expect(await runtime?.catalogue(signal)).toMatchObject([{ id: "qwen3-8b", loaded: true }]);
    await runtime?.close?.();
  });

  test("Ollama is not taken for another, and nothing under /v1 is asked of it", async () => {
    await using fake = await FakeOllama.start();
    for (const allowOther of [false, true]) expect(await recognised(fake.url, { allowOther })).toBe("nothing");
    expect(fake.requests.filter(({ path }) => path.startsWith("/v1"))).toEqual([]);
    expect((await recogniseOllama({ url: fake.url, clock }, signal))?.name).toBe("ollama");
  });

  test("a server without a name is known only where others are allowed, or the operator says so", async () => {
    await using fake = await FakeOtherServer.start();
    expect(await recognised(fake.url)).toBe("nothing");
    expect(fake.requests.filter(({ path }) => path.startsWith("/v1"))).toEqual([]);
    expect(await recognised(fake.url, { allowOther: true })).toBe("openai");
    expect(await recognised(fake.url, { wanted: "vllm" })).toBe("vllm");
  });
});

/** Two tests in one: nothing is recognised there, and nothing under `/v1` is asked. */
const strangers: Readonly<Record<string, RequestListener>> = {
  "404 everywhere": (_, response) => response.writeHead(404).end("Not Found"),
  "401 everywhere, as a gateway of ours": (_, response) =>
    response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"message":"no key"}}'),
  "500 everywhere": (_, response) => response.writeHead(500).end(),
  "a page everywhere": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html></html>"),
  "an empty object everywhere": (_, response) => response.writeHead(200).end("{}"),
  "null everywhere": (_, response) => response.writeHead(200).end("null"),
  "a redirection everywhere": (_, response) => response.writeHead(302, { location: "/login" }).end(),
  "an endless body everywhere": (_, response) => void response.writeHead(200).write("{".repeat(20 * 1024 * 1024)),
};

describe("nothing is recognised, and nothing under /v1 asked, at a server that answers", () => {
  test.each(Object.keys(strangers))(
    "nothing is recognised, and nothing under /v1 asked, at a server that answers %s",
    async (name) => {
      const { url, asked } = await serverSaying(strangers[name] ?? (() => undefined));
      expect(await recognised(url)).toBe("nothing");
      expect(await recogniseOllama({ url, clock }, signal)).toBeUndefined();
      expect(asked.length).toBeGreaterThan(0);
      expect(asked.filter((path) => path.startsWith("/v1"))).toEqual([]);
    },
  );

  test.each(["404 everywhere", "401 everywhere, as a gateway of ours"])(
    "nothing is recognised at a server that answers %s, were others allowed or a kind wanted",
    async (name) => {
      const { url } = await serverSaying(strangers[name] ?? (() => undefined));
      expect(await recognised(url, { allowOther: true })).toBe("nothing");
      for (const wanted of ["vllm", "llama-server", "lm-studio", "mlx-lm", "openai"] as const) {
        expect(await recognised(url, { wanted })).toBe("nothing");
      }
    },
  );
});

test("a Trunkline gateway is taken for no runtime, neither at a usual port nor where the operator names it", async () => {
  await using gateway = await startGatewayInProcess();
  const { origin } = new URL(gateway.baseUrl);
  const sights = [{ urls: [], usual: [origin] }, { urls: [origin] }, { urls: [`${origin}/v1`] }].map(async (where) =>
    runtimeSources({ kind: "auto", clock, ...where })[0]?.look(signal),
  );
  expect(await Promise.all(sights)).toEqual(["something-else", "nothing", "nothing"]);
  const { endpoint } = await gateway.issue();
  expect(() => agentConfig({ TRUNKLINE_RUNTIME_KEY: endpoint.key })).toThrow(/TRUNKLINE_RUNTIME_KEY must be a model/);
});

const list = `{"object":"list","data":[{"id":"m","object":"model","owned_by":"someone"}]}`;
test.each<[string, Record<string, string>]>([
  ["vLLM because it tells a version", { "/version": '{"version":"1.2.3"}', "/v1/models": list }],
  ["mlx-lm because it is in good health", { "/health": '{"status":"ok"}', "/v1/models": list }],
  ["llama-server because it has properties", { "/props": '{"title":"a theatre"}' }],
])("a server is not taken for %s: a little evidence is none", async (_, answers) => {
  const { url } = await serverSaying(({ url: path = "" }, response) => {
    response.writeHead(path in answers ? 200 : 404).end(answers[path] ?? "Not Found");
  });
  expect(await recognised(url)).toBe("nothing");
});

describe("a port that takes connections and never answers", () => {
  async function deafPort(): Promise<{ url: string; open: Set<Socket>; taken: () => number }> {
    const open = new Set<Socket>();
    let taken = 0;
    const server = createTcpServer((socket) => {
      taken += 1;
      open.add(socket);
      socket.on("error", () => undefined).once("close", () => open.delete(socket));
      socket.resume();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      for (const socket of open) socket.destroy();
      server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, open, taken: () => taken };
  }

  test.each(runtimeKinds.filter((kind) => kind !== "scripted"))(
    "a port that takes connections and never answers is given up on in time when %s is looked for, and nothing is left open",
    async (kind) => {
      const { url, open, taken } = await deafPort();
      const turned = new TurnableClock();
      const [source] = runtimeSources({ kind, urls: [url], clock: turned });
      const looking = source?.look(signal).catch(() => "given up");
      await until(() => taken() > 0, { what: "the question" });
      turned.advance(detectMs);
      expect(await looking).toBe("given up");
      expect(turned.timersWaiting).toBe(0);
      await until(() => open.size === 0, { what: "the connections to be closed" });
    },
  );
});

describe("looking for runtimes", () => {
  test("the agent looks where runtimes usually are when nobody says where", () => {
    const usual = (kind: WantedRuntimes["kind"]) =>
      runtimeSources({ kind, urls: [], clock: clock }).map(({ location }) => location);
    expect(usual("auto")).toEqual([
      "http://127.0.0.1:11434",
      "http://127.0.0.1:8000",
      "http://127.0.0.1:8080",
      "http://127.0.0.1:1234",
    ]);
    expect(usual("ollama")).toEqual(["http://127.0.0.1:11434"]);
    expect(usual("vllm")).toEqual(["http://127.0.0.1:8000"]);
  });

  test("the agent shows the operator's key to the places that he named, and to no stranger at a usual one", async () => {
    const shown: (string | undefined)[] = [];
    const url = await serverOfTest(({ headers }, response) => {
      shown.push(headers.authorization);
      response.writeHead(404).end();
    });
    const look = async (where: Pick<WantedRuntimes, "urls" | "usual">) => {
      const [source] = runtimeSources({ kind: "auto", apiKey: "secret", clock: clock, ...where });
      await source?.look(signal);
      return new Set(shown.splice(0));
    };
    expect(await look({ urls: [], usual: [url] })).toEqual(new Set([undefined]));
    expect(await look({ urls: [url] })).toEqual(new Set(["Bearer secret"]));
  });

  test("a look for runtimes ends with the signal of whoever looks", async () => {
    await using ollama = await FakeOllama.start();
    ollama.silent = true;
    const abort = new AbortController();
    const [source] = runtimeSources({ kind: "ollama", urls: [ollama.url], clock: clock });
    const looking = source?.look(abort.signal);
    const reason = new Error("stopping");
    abort.abort(reason);
    await expect(looking).rejects.toBe(reason);
  });
});
