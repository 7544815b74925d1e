import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { furtherAbilities } from "#shared/protocol/model.ts";
import type { NewKey } from "#shared/records/issue-key.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { untilProved } from "../harness/until-proved.ts";
import { until } from "../harness/until.ts";
import { type Plan, ServerOfEveryPath } from "./server-of-every-path.ts";

interface Api {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The field that holds a file, in a form. */
  readonly file?: string;
  /** The end of an answer whose machine died in its middle; undefined if the answer comes whole, from another one. */
  readonly broken?: RegExp | "a cut connection";
  /** True if no token of the request is counted: then a key with a limit in tokens is served all the same. */
  readonly isFree?: boolean;
  /** The shape of a refusal. */
  readonly refusal?: "Messages API" | "Ollama";
  /** True if an answer of the demonstration goes on at another machine. */
  readonly goesOn?: (says: string) => Readonly<Record<string, unknown>>;
}

const question = (content: string) => ({ messages: [{ role: "user", content }] });
const failed = /"code": ?"(?:agent_disconnected|agent_offline)"/;

const ollama = { broken: failed, refusal: "Ollama" } as const;

const apis: Readonly<Record<string, Api>> = {
  chat: { path: "/v1/chat/completions", body: { ...question("sky"), stream: true }, broken: failed, goesOn: question },
  response: {
    path: "/v1/responses",
    body: { input: "sky", stream: true },
    broken: failed,
    goesOn: (input) => ({ input }),
  },
  message: {
    path: "/v1/messages",
    body: { ...question("sky"), max_tokens: 1_000, stream: true },
    broken: failed,
    refusal: "Messages API",
    goesOn: (says) => ({ ...question(says), max_tokens: 1_000 }),
  },
  completion: {
    path: "/v1/completions",
    body: { prompt: "sky", stream: true },
    broken: failed,
    goesOn: (line) => ({ prompt: `${line}\n`, max_tokens: 1_000 }),
  },
  embeddings: { path: "/v1/embeddings", body: { input: "sky" } },
  rerank: { path: "/v1/rerank", body: { query: "sky", documents: ["blue"] } },
  score: { path: "/v1/score", body: { text_1: "sky", text_2: "blue" } },
  transcription: { path: "/v1/audio/transcriptions", body: { stream: true }, file: "file", broken: failed },
  translation: { path: "/v1/audio/translations", body: {}, file: "file" },
  speech: { path: "/v1/audio/speech", body: { input: "sky" }, broken: "a cut connection" },
  image: { path: "/v1/images/generations", body: { prompt: "sky" } },
  "image edit": { path: "/v1/images/edits", body: { prompt: "sky" }, file: "image" },
  moderation: { path: "/v1/moderations", body: { input: "sky" } },
  tokens: { path: "/tokenize", body: { prompt: "sky" }, isFree: true },
  "Ollama's chat": { ...ollama, path: "/api/chat", body: question("sky"), goesOn: question },
  "Ollama's prompt": { ...ollama, path: "/api/generate", body: { prompt: "sky" }, goesOn: (prompt) => ({ prompt }) },
  "Ollama's vectors": { path: "/api/embed", body: { input: "sky" }, refusal: "Ollama" },
};

const machines = ["attic", "cellar"] as const;

describe.skipIf(lentOnly("nats", "redis"))("every API", () => {
  const parts = new AsyncDisposableStack();
  const plan: Plan = { turns: [] };
  let servers: readonly ServerOfEveryPath[];
  let fleet: Fleet;
  let operator: Operator;
  const folder = folderOfTests();
  beforeAll(async () => {
    const file = join(folder, "models.json");
    const able = { capabilities: { completion: true, embedding: true }, x_capabilities: furtherAbilities };
    await writeFile(file, JSON.stringify({ m: able }));
    servers = await Promise.all(machines.map(async () => parts.use(await ServerOfEveryPath.start(plan))));
    const settings = { TRUNKLINE_RUNTIME: "openai", TRUNKLINE_MODELS_FILE: file };
    const wished = machines.map((machine, place) => {
      const { url } = servers[place] ?? expect.fail();
      return [machine, { env: { ...settings, TRUNKLINE_RUNTIME_URL: url } }] as const;
    });
    fleet = parts.use(await startFleet({ machines: Object.fromEntries(wished) }));
    await fleet.endpoint.untilListed("m");
    operator = parts.use(await Operator.on({ redisUrl: fleet.redis.url }));
  });
  afterAll(() => parts.disposeAsync());
  beforeEach(() => {
    plan.turns.length = 0;
    for (const { requests } of servers) requests.length = 0;
  });

  const asked = () => servers.flatMap(({ requests }) => requests.filter(({ method }) => method === "POST"));

  function ask({ path, body, file }: Api, model = "m", { at = fleet.endpoint, signal }: Asking = {}) {
    const { href } = new URL(path, at.baseUrl);
    const fields = { model, ...body };
    if (file === undefined) return at.post(href, fields, { signal });
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append(file, new File(["abc"], "a.wav"));
    return at.post(href, form, { signal });
  }

  async function keyWith(terms: Partial<NewKey>): Promise<Endpoint> {
    return fleet.endpoint.withKey((await operator.issue(terms)).token.reveal());
  }

  /** Checks that a request was refused in the words of its API, and returns the code. */
  async function refused({ refusal }: Api, response: Response, status: number): Promise<string | null> {
    const text = await response.text();
    expect([response.status, response.headers.get("content-type")], text).toEqual([
      status,
      expect.stringContaining("application/json"),
    ]);
    const told = JSON.parse(text) as Record<string, unknown>;
    if (refusal === "Ollama") {
      expect(told["error"]).toEqual(expect.any(String));
      return String(told["code"]);
    }
    if (refusal === "Messages API") expect(told["type"]).toBe("error");
    return (told["error"] as { code: string | null }).code;
  }

  describe.each(Object.entries(apis))("%s", (_, api) => {
    test("keeps a key to the models that it may use", async () => {
      const at = await keyWith({ scopes: ["model:other"] });
      expect(await refused(api, await ask(api, "m", { at }), 404)).toBe("model_not_found");
      expect(asked()).toEqual([]);
    });

    test("keeps to the limits of a key", async () => {
      const at = await keyWith({ limits: { requestsPerMinute: 1 } });
      const first = await ask(api, "m", { at });
      expect([first.status, (await first.arrayBuffer()).byteLength > 0]).toEqual([200, true]);
      const second = await ask(api, "m", { at });
      expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await refused(api, second, 429)).toBe("rate_limit_exceeded");
      expect(asked()).toHaveLength(1);
    });

    test(`${api.isFree ? "asks nothing of" : "does not escape"} a limit in tokens`, async () => {
      const at = await keyWith({ limits: { tokensPerMinute: 1 } });
      await (await ask(api, "m", { at })).arrayBuffer();
      const second = await ask(api, "m", { at });
      await second.arrayBuffer();
      if (api.isFree) expect(second.status).toBe(200);
      else expect([403, 429]).toContain(second.status);
    });

    test("stops the model when its client leaves", async () => {
      plan.turns.push("holds");
      const leaving = new AbortController();
      const left = ask(api, "m", { signal: leaving.signal });
      await until(() => asked().length === 1, { what: "a server to be asked" });
      leaving.abort();
      await expect(left).rejects.toThrow();
      await until(() => asked()[0]?.closedEarly, { what: "the server to be left" });
      expect(asked()).toHaveLength(1);
    });

    test("asks the other machine when the first one's server breaks off", async () => {
      plan.turns.push("breaks");
      const response = await ask(api);
      expect([response.status, (await response.arrayBuffer()).byteLength > 0]).toEqual([200, true]);
      expect(asked()).toHaveLength(2);
    });

    test(`${api.broken === undefined ? "comes whole from the other machine" : "ends in an error"} when its machine is killed in mid-answer`, async () => {
      plan.turns.push("begins");
      const response = ask(api);
      await until(() => asked().length === 1, { what: "a server to be asked" });
      const [first] = servers;
      const place = first?.requests.some(({ method }) => method === "POST") ? 0 : 1;
      if (api.broken !== undefined) await response;
      await fleet.agent(machines[place]).kill();
      const text = response.then((given) => given.text());
      if (api.broken === "a cut connection") await expect(text).rejects.toThrow();
      else if (api.broken === undefined)
        expect([(await response).status, asked().length, await text]).toEqual([200, 2, expect.any(String)]);
      else {
        expect(await text).toMatch(api.broken);
        expect(await text).not.toMatch(/\[DONE\]|"done":true|message_stop|response\.completed/);
      }
      await fleet.startAgent(machines[place]);
    });
  });
});

interface Asking {
  readonly at?: Endpoint;
  readonly signal?: AbortSignal;
}

/** The texts of an answer, in whatever shape it came. */
function textsIn(answer: string): string {
  return [...answer.matchAll(/"(?:content|text|delta|response)":"((?:abc-\d+ )+)"/g)].map(([, text]) => text).join("");
}

describe.skipIf(lentOnly("nats", "redis"))("an answer of the demonstration", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    const models = ["scripted"];
    fleet = await startFleet({ machines: { attic: { models }, cellar: { models } } });
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  test.each(Object.entries(apis).filter(([, { goesOn }]) => goesOn))(
    "an answer of the demonstration goes on at another machine for %s",
    async (_, { path, goesOn }) => {
      await untilProved({ ...fleet, offers: fleet.machines.length });
      // A machine that goes on before the 30th token would end as well: the tokens before it have to be on their way by then.
      const says = goesOn?.("/script tokens=60 delay_ms=40 nonce=abc exit_at=30");
      const { href } = new URL(path, fleet.endpoint.baseUrl);
      const text = await (await fleet.endpoint.post(href, { model: "scripted", stream: true, ...says })).text();
      const words = textsIn(text);
      if (path.startsWith("/v1/")) expect(text).toMatch(/^: continued on (?:attic|cellar)$/m);
      expect(words.startsWith(Array.from({ length: 60 }, (__, index) => `abc-${index} `).join(""))).toBe(true);
      const [dead] = fleet.machines.filter((machine) => fleet.agent(machine).ended);
      await fleet.startAgent(dead ?? expect.fail("no machine died"));
    },
  );
});
