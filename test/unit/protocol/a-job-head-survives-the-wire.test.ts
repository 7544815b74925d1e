import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { modelId } from "#shared/model/model.ts";
import {
  decodeJobHead,
  decodePartHead,
  encodeJobHead,
  encodePartHead,
  jobKinds,
  type Headers,
  type JobHead,
} from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { newToken } from "#shared/protocol/identifiers.ts";

const reader = (headers: Headers) => (name: string) => headers[name];
const plain: JobHead = {
  id: newToken(),
  kind: "chat",
  shape: "chat-stream",
  keyId: "AbCdEf123456",
  remainingMs: 600_000,
  bodyBytes: 10,
};

/** Any id that a catalogue may hold, whatever its makers thought of. */
const oddModel = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 60 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 60 }),
    fc.constantFrom("hf.co/org/name:q4_K_M", "a\r\ntl-key: stolen", "100%", "%E0%A4%A", " spaced ", "模型:最新", "👩‍🚀"),
  )
  .filter((id) => modelId.safeParse(id).success);

describe("a job's head", () => {
  test("is read as it was written, with any model name", () => {
    const head: fc.Arbitrary<JobHead> = fc.record(
      {
        id: fc.constant(newToken()),
        kind: fc.constantFrom(...jobKinds),
        shape: fc.constantFrom("chat-stream", "chat-whole", "events", "models"),
        model: oddModel,
        keyId: fc.constant("AbCdEf123456"),
        remainingMs: fc.nat(),
        bodyBytes: fc.nat(limits.jobBodyBytesMax),
        sha256: fc.constant("0f".repeat(32)),
        responseId: fc.constant("chatcmpl-x"),
        createdSeconds: fc.nat(),
        includeUsage: fc.boolean(),
        cacheSalt: fc.constant("0f".repeat(16)),
        traceparent: fc.constant("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
      },
      { requiredKeys: ["id", "kind", "shape", "remainingMs", "bodyBytes"] },
    );
    fc.assert(
      fc.property(head, (given) => {
        expect(decodeJobHead(reader(encodeJobHead(given)))).toEqual(given);
      }),
      { numRuns: 500 },
    );
  });

  test("is plain text in one line each, since that is what headers are", () => {
    fc.assert(
      fc.property(oddModel, (model) => {
        for (const value of Object.values(encodeJobHead({ ...plain, model }))) expect(value).toMatch(/^[\x20-\x7e]*$/);
      }),
    );
  });

  test.each(["broken-\ud800", "\udc00", "\ud83d"])("carries %j if that may be a model's id at all", (model) => {
    if (!modelId.safeParse(model).success) return;
    expect(decodeJobHead(reader(encodeJobHead({ ...plain, model })))).toEqual({ ...plain, model });
  });

  test.each([
    ["id", { "tl-job": "short" }],
    ["id with a dot", { "tl-job": `${newToken().slice(1)}.` }],
    ["kind", { "tl-kind": "dance" }],
    ["time", { "tl-remaining-ms": "-1" }],
    ["time with a fraction", { "tl-remaining-ms": "1.5" }],
    ["size", { "tl-body-bytes": `${limits.jobBodyBytesMax + 1}` }],
    ["hash", { "tl-sha256": "0F".repeat(32) }],
    ["flag", { "tl-include-usage": "true" }],
    ["model", { "tl-model": "%E0%A4%A" }],
    ["empty model", { "tl-model": "" }],
    ["long model", { "tl-model": "m".repeat(257) }],
    ["shape", { "tl-shape": "x".repeat(41) }],
    ["salt", { "tl-cache-salt": "x".repeat(65) }],
  ])("is nothing when its %s is not what it must be", (_, wrong) => {
    const headers = encodeJobHead(plain);
    expect(decodeJobHead(reader(headers))).toEqual(plain);
    expect(decodeJobHead(reader({ ...headers, ...wrong }))).toBeUndefined();
  });

  test.each(["tl-job", "tl-kind", "tl-shape", "tl-remaining-ms", "tl-body-bytes"])("is nothing without %s", (name) => {
    const { [name]: _, ...rest } = encodeJobHead(plain);
    expect(decodeJobHead(reader(rest))).toBeUndefined();
  });

  test("is nothing when headers are any text, and never throws", () => {
    fc.assert(
      fc.property(fc.func(fc.option(fc.string({ unit: "binary" }), { nil: undefined })), (read) => {
        expect(decodeJobHead(read)).toBeUndefined();
        expect(decodePartHead(read)).toBeUndefined();
      }),
    );
  });
});

test("a part's head is read as it was written", () => {
  fc.assert(
    fc.property(fc.nat(limits.jobBodyBytesMax), (offset) => {
      const head = { id: newToken(), offset };
      expect(decodePartHead(reader(encodePartHead(head)))).toEqual(head);
    }),
  );
});
