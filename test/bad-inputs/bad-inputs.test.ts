import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorIn } from "../harness/endpoint.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import type { WireAnswer } from "./answer-reader.ts";
import { exchange } from "./exchange.ts";
import { makeKeys } from "./keys-of-the-test.ts";
import type { Case, KeysOfTheTest, Told } from "./row.ts";
import { sections } from "./sections.ts";

let up: UpProcess;
let keys: KeysOfTheTest;
beforeAll(async () => {
  up = await startUp({ TRUNKLINE_KEY_PEPPER: testPepper, TRUNKLINE_LOG_LEVEL: "debug" });
  keys = await makeKeys(up);
});
afterAll(() => up[Symbol.asyncDispose]());

describe.each(sections)("$title", ({ cases }) => {
  test.each(cases.map((each) => [`${each.rows.join(", ")}: ${each.what}`, each] as const))("%s", async (_, each) => {
    const { told, afterwards = "open" } = each;
    const exchanged = await exchange(up.endpoint.baseUrl, {
      bytes: each.sent(keys),
      answers: told.length,
      afterwards,
      hangsUp: each.hangsUp,
    });
    const { answers, closed, rest } = exchanged;
    expect(answers.map(({ status }) => status)).toEqual(told.map(({ status }) => status));
    for (const [place, answer] of answers.entries()) isAsTold(answer, told[place]);
    expect({ closed, rest }).toEqual({ closed: afterwards === "closed", rest: "" });
    await leavesNoTrace(each);
  });
});

/** What every answer has, what every error has, and what this one has of its own. */
function isAsTold(answer: WireAnswer, told: Told | undefined): void {
  const { status, headers, body } = answer;
  if (status < 200) return;
  expect(headers.get("x-request-id")).toMatch(/^req_\w{10,}$/);
  expect(headers.get("openai-processing-ms")).toMatch(/^\d+$/);
  if (status >= 400) {
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    const error = errorIn(body);
    expect([error.code, error.param]).toEqual([told?.code, told?.param ?? null]);
    expect(headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : undefined);
    expect(error.message).not.toMatch(/\.ts:\d+|node:internal|\n +at /);
  }
  for (const key of Object.values(keys)) expect(body).not.toContain(key);
  if (told?.says !== undefined) expect(body).toMatch(told.says);
  if (told?.saysNot !== undefined) expect(body).not.toMatch(told.saysNot);
  for (const [name, value] of Object.entries(told?.headers ?? {})) hasHeader(headers, name, value);
}

function hasHeader(headers: WireAnswer["headers"], name: string, value: string | RegExp | null): void {
  if (value instanceof RegExp) expect(headers.get(name)).toMatch(value);
  else expect(headers.get(name) ?? null).toBe(value);
}

async function leavesNoTrace({ unlogged }: Case): Promise<void> {
  if (unlogged !== undefined) expect(await up.stderr()).not.toMatch(unlogged);
}

describe("after all of that", () => {
  test("the gateway serves as before", async () => {
    expect(await up.endpoint.answer({ model: "scripted", says: "/script tokens=1" })).toBe("token-0 ");
  });

  test("nothing was logged as a failure, and no key at all", async () => {
    const lines = await up.logLines();
    expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
    const log = await up.stderr();
    for (const key of Object.values(keys)) expect(log).not.toContain(key);
  });

  test("nothing is left under way that a stop would have to wait for", async () => {
    expect(await up.terminate()).toBe(0);
    expect((await up.logLines()).filter(({ level }) => level >= 50)).toEqual([]);
  });
});
