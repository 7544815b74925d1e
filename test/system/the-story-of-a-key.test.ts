import OpenAI, { AuthenticationError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { errorIn, type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const shown = z.looseObject({ id: z.string(), state: z.string(), expires_at: z.string(), key: z.string().optional() });
type Shown = z.infer<typeof shown>;
const takenBackWithinMs = 5_000;

describe.skipIf(lentOnly("nats", "redis"))("the story of a key at two gateways", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"] } } });
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  async function cli(...args: string[]): Promise<Shown> {
    const { exitCode, stdout, stderr } = await trunkline(["keys", ...args, "--json"], fleet.keyStore);
    expect(stderr + String(exitCode)).toMatch(/0$/);
    return shown.parse(JSON.parse(stdout));
  }
  let adminKey: string;
  beforeAll(async () => {
    adminKey = (await cli("issue", "--admin", "--name", "console")).key ?? "";
  });
  async function api(method: string, path: string, body?: object): Promise<Shown> {
    const [gateway] = fleet.gateways;
    const response = await fetch(`${gateway?.operationsUrl}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const told: unknown = await response.json();
    expect([response.status, told]).toEqual([expect.toSatisfy((status) => status === 200 || status === 201), told]);
    return shown.parse({ expires_at: "", ...Object(told) });
  }

  const operators = [
    {
      by: "the command line",
      issue: (ttl: string) => cli("issue", "--name", "story", "--ttl", ttl),
      rotate: (id: string, grace: string) => cli("rotate", id, "--grace", grace),
      extend: (id: string) => cli("extend", id, "--ttl", "1h"),
      disable: (id: string) => cli("disable", id),
      enable: (id: string) => cli("enable", id),
      revoke: async (id: string) => void (await trunkline(["keys", "revoke", id, "--json"], fleet.keyStore)),
      show: (id: string) => cli("show", id),
    },
    {
      by: "the admin API",
      issue: (ttl: string) => api("POST", "/keys", { name: "story", ttl }),
      rotate: (id: string, grace: string) => api("POST", `/keys/${id}/rotate`, { grace }),
      extend: (id: string) => api("POST", `/keys/${id}/extend`, { ttl: "1h" }),
      disable: (id: string) => api("POST", `/keys/${id}/disable`),
      enable: (id: string) => api("POST", `/keys/${id}/enable`),
      revoke: async (id: string) => void (await api("POST", `/keys/${id}/revoke`)),
      show: (id: string) => api("GET", `/keys/${id}`),
    },
  ];

  /** What an official client gets at each gateway: an answer, or the code of the error that it raises. */
  async function used(key: string | undefined): Promise<(string | null | undefined)[]> {
    return Promise.all(
      fleet.endpoints.map(async ({ baseUrl: baseURL }) => {
        const client = new OpenAI({ baseURL, apiKey: key ?? "", maxRetries: 0 });
        const messages = [{ role: "user" as const, content: "/script tokens=1" }];
        try {
          const answer = await client.chat.completions.create({ model: "scripted", messages });
          return answer.choices[0]?.message.content;
        } catch (error) {
          if (error instanceof AuthenticationError) return error.code;
          throw error;
        }
      }),
    );
  }
  const untilUsed = (key: string | undefined, outcome: string): Promise<boolean> =>
    until(async () => (await used(key)).every((each) => each === outcome), {
      what: `the key to be ${outcome} at both gateways`,
      timeoutMs: takenBackWithinMs,
    });
  const worksAt = (endpoint: Endpoint | undefined, key: string | undefined): Endpoint => {
    if (endpoint === undefined || key === undefined) throw new Error("there is no gateway or no key");
    return endpoint.withKey(key);
  };

  test.each(operators)(
    "the story of a key at two gateways by $by: issued, used, disabled, enabled, rotated, revoked",
    async (operator) => {
      const { id, key } = await operator.issue("1h");
      expect(await used(key)).toEqual(["token-0 ", "token-0 "]);

      expect(await operator.disable(id)).toMatchObject({ state: "disabled" });
      await untilUsed(key, "key_invalid");
      expect(await operator.enable(id)).toMatchObject({ state: "valid" });
      await untilUsed(key, "token-0 ");

      const { key: second } = await operator.rotate(id, "1h");
      expect(second).not.toBe(key);
      await untilUsed(second, "token-0 ");
      expect(await used(key)).toEqual(["token-0 ", "token-0 "]);
      const { key: third } = await operator.rotate(id, "1ms");
      await untilUsed(second, "key_expired");
      await untilUsed(third, "token-0 ");

      const streams = await Promise.all(
        fleet.endpoints.map((endpoint) =>
          worksAt(endpoint, third).stream({ model: "scripted", says: "/script tokens=5000 delay_ms=20" }),
        ),
      );
      await until(() => streams.every(({ text }) => text !== ""), { what: "both streams to begin" });
      await operator.revoke(id);
      const revokedAtMs = performance.now();
      for (const stream of streams) {
        await stream.over;
        expect(errorIn(stream.events.at(-1) ?? "").code).toBe("key_invalid");
      }
      expect(performance.now() - revokedAtMs).toBeLessThan(takenBackWithinMs);
      for (const each of [key, second, third]) expect(new Set(await used(each))).toEqual(new Set(["key_invalid"]));
      expect(await operator.show(id)).toMatchObject({ state: "revoked" });
    },
  );

  test.each(operators)(
    "the story of a key at two gateways by $by: expired, told so, and extended",
    async (operator) => {
      const { id, key } = await operator.issue("2s");
      expect(await used(key)).toEqual(["token-0 ", "token-0 "]);
      await untilUsed(key, "key_expired");
      expect(await operator.extend(id)).toMatchObject({ state: "valid" });
      await untilUsed(key, "token-0 ");
    },
  );

  test("the trail tells all of it, and who did it", async () => {
    const { stdout } = await trunkline(["keys", "log", "--json", "--limit", "200"], fleet.keyStore);
    const entries = z.array(z.looseObject({ by: z.string(), action: z.string() })).parse(JSON.parse(stdout));
    for (const by of [/^cli /, /^admin /]) {
      const actions = new Set(entries.filter((entry) => by.test(entry.by)).map(({ action }) => action));
      const expected = ["issued", "disabled", "enabled", "rotated", "extended", "revoked"];
      expect([...actions]).toEqual(expect.arrayContaining(expected));
    }
  });

  test("usage is shown by the command line and the admin API alike", async () => {
    const sum = (rows: readonly { readonly requests: number }[]): number =>
      rows.reduce((requests, row) => requests + row.requests, 0);
    const rows = z.looseObject({ data: z.array(z.looseObject({ requests: z.number() })) });
    const { stdout } = await trunkline(["usage", "--json"], fleet.keyStore);
    const [gateway] = fleet.gateways;
    const headers = { authorization: `Bearer ${adminKey}` };
    const told = rows.parse(await (await fetch(`${gateway?.operationsUrl}/admin/v1/usage`, { headers })).json());
    expect(sum(told.data)).toBeGreaterThan(20);
    expect(stdout).toContain('"requests"');
  });
});
