import OpenAI, { AuthenticationError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { errorIn, type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

const shown = z.looseObject({ id: z.string(), state: z.string(), expires_at: z.string(), key: z.string().optional() });
type Shown = z.infer<typeof shown>;
const takenBackWithinMs = 5_000;

describe.skipIf(lentOnly("nats", "redis"))("the story of a key at two gateways", () => {
  let fleet: Fleet;
  let admin: Endpoint;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"] } } });
    admin = await fleet.admin();
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  async function cli(...args: string[]): Promise<Shown> {
    const { exitCode, out, err } = await trunklineHere(["keys", ...args, "--json"], fleet.keyStore);
    expect(err + String(exitCode)).toMatch(/0$/);
    return shown.parse({ expires_at: "", state: "", ...JSON.parse(out) });
  }
  async function api(method: string, path: string, body?: object): Promise<Shown> {
    const response = await admin.send(method, path, body);
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
      revoke: (id: string) => cli("revoke", id),
      show: (id: string) => cli("show", id),
    },
    {
      by: "the admin API",
      issue: (ttl: string) => api("POST", "/keys", { name: "story", ttl }),
      rotate: (id: string, grace: string) => api("POST", `/keys/${id}/rotate`, { grace }),
      extend: (id: string) => api("POST", `/keys/${id}/extend`, { ttl: "1h" }),
      disable: (id: string) => api("POST", `/keys/${id}/disable`),
      enable: (id: string) => api("POST", `/keys/${id}/enable`),
      revoke: (id: string) => api("POST", `/keys/${id}/revoke`),
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
          endpoint.withKey(third ?? "").stream({ model: "scripted", says: "/script tokens=5000 delay_ms=20" }),
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

  test("the trail of a key tells all of it, and who did it", async () => {
    const { out } = await trunklineHere(["keys", "log", "--json", "--limit", "200"], fleet.keyStore);
    const entries = z.array(z.looseObject({ by: z.string(), action: z.string() })).parse(JSON.parse(out));
    for (const by of [/^cli /, /^admin /]) {
      const actions = new Set(entries.filter((entry) => by.test(entry.by)).map(({ action }) => action));
      const expected = ["issued", "disabled", "enabled", "rotated", "extended", "revoked"];
      expect([...actions]).toEqual(expect.arrayContaining(expected));
    }
  });
});
