import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { z } from "zod";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import { chatBody, completeBody, embedBody, rankBody } from "#shared/protocol/job-bodies.ts";
import { paramCharactersMax } from "../../services/gateway/http/shape-faults.ts";
import { readRequest } from "../harness/read-requests.ts";
import { faultBody } from "../../services/gateway/http/answer-faults.ts";
import { errorIn, type ErrorTold } from "../harness/endpoint.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { nearJson, ofNastyTexts, withOtherBytes, withOtherValues, type Endpoint, type Sent } from "./nearly-right.ts";

/** Every run tries the same, unless it is told to try more, or what failed elsewhere: fast-check prints the seed. */
const { TRUNKLINE_TEST_FUZZ_RUNS: runs, TRUNKLINE_TEST_FUZZ_SEED: seed } = process.env;
const tries = (few: number) => ({
  numRuns: Number(runs ?? few),
  seed: Number(seed ?? 5),
  interruptAfterTimeLimit: timeLimitMs,
});
const timeLimitMs = runs === undefined ? 15_000 : 3_600_000;
const testTimeoutMs = timeLimitMs + 15_000;

const kinds: readonly (readonly [what: string, arbitrary: fc.Arbitrary<Sent>])[] = [
  ["a request with other values is", withOtherValues],
  ["a request with other bytes is", withOtherBytes],
  ["a request of nasty texts is", ofNastyTexts],
  ["what is nearly JSON is", nearJson],
];

/** What every refusal keeps to, whatever it refuses. */
function isSound(error: ErrorTold): void {
  expect(error.message.length).toBeLessThan(2 * paramCharactersMax + 1_000);
  expect(error.message.isWellFormed()).toBe(true);
  if (error.param !== null) {
    expect(error.param).not.toBe("");
    expect(error.param.length).toBeLessThanOrEqual(paramCharactersMax + 1);
    expect(error.param).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
  }
}

describe("in a process, answered or refused", () => {
  let up: UpProcess;
  beforeAll(async () => void (up = await startUp({ TRUNKLINE_SLOTS: "64" })));
  afterAll(() => up[Symbol.asyncDispose]());

  async function send({ endpoint, body }: Sent): Promise<void> {
    const response = await fetch(`${up.endpoint.baseUrl}/${endpoint}`, {
      method: "POST",
      headers: { authorization: `Bearer ${up.endpoint.key}`, "content-type": "application/json" },
      body: new Uint8Array(body),
    });
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
    if (response.status === 200) {
      await response.body?.cancel();
      return;
    }
    expect([400, 404]).toContain(response.status);
    isSound(errorIn(await response.text()));
  }

  test.each(kinds)(
    "%s so, and never our fault",
    async (_, arbitrary) => {
      const eachOf = fc.asyncProperty(fc.array(arbitrary, { minLength: 8, maxLength: 8 }), async (all) => {
        await Promise.all(all.map(send));
      });
      await fc.assert(eachOf, tries(40));
      expect(await up.endpoint.answer({ model: "scripted", says: "/script tokens=1 nonce=x" })).toBe("x-0 ");
      const lines = await up.logLines();
      expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
    },
    testTimeoutMs,
  );
});

const outers: Readonly<Record<Endpoint, string>> = {
  "chat/completions": "chat",
  responses: "response",
  messages: "message",
  completions: "completion",
  embeddings: "embeddings",
  rerank: "rerank",
  score: "score",
};
const agreed: Readonly<Record<string, z.ZodType>> = {
  chat: chatBody,
  complete: completeBody,
  embed: embedBody,
  rerank: rankBody,
};

describe("when it is read, refused or what machines agreed to", () => {
  test.each(kinds)(
    "%s so",
    (_, arbitrary) => {
      const eachOf = fc.property(arbitrary, ({ endpoint, body }) => {
        try {
          const read = readRequest(outers[endpoint], body);
          agreed[read.kind]?.parse(JSON.parse(Buffer.from(read.body).toString()));
        } catch (thrown) {
          if (!(thrown instanceof Fault)) throw thrown;
          expect(faultEntry(thrown.code).status).toBe(400);
          isSound(faultBody(thrown).error);
        }
        expect(Object.keys(Object.prototype)).toEqual([]);
      });
      fc.assert(eachOf, tries(3_000));
    },
    testTimeoutMs,
  );
});
