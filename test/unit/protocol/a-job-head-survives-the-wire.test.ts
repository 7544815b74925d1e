import * as fc from "fast-check";
import { expect, test } from "vitest";
import { modelId } from "#shared/protocol/model.ts";
import { frameVersion } from "#shared/protocol/frame.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { decodeJobHead, decodePartHead, encodeHead, headHeader, jobKinds, type JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";

const written = (head: object): string | undefined => encodeHead(head as JobHead)[headHeader];
const plain: JobHead = { id: newToken(), kind: "chat", keyId: "AbCdEf123456", remainingMs: 600_000, bodyBytes: 10 };
const malformed = { outcome: "malformed" };

/** Any id that a catalogue may hold, whatever its makers thought of. */
const oddModel = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 60 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 60 }),
    fc.constantFrom("hf.co/org/name:q4_K_M", "a\r\ntl-key: stolen", "100%", "%E0%A4%A", " spaced ", "模型:最新", "👩‍🚀"),
  )
  .filter((id) => modelId.safeParse(id).success);

test("a job's head is read as it was written, with any model name", () => {
  const head: fc.Arbitrary<JobHead> = fc.record(
    {
      id: fc.constant(newToken()),
      kind: fc.constantFrom(...jobKinds),
      whole: fc.boolean(),
      credit: fc.nat(),
      model: oddModel,
      keyId: fc.constant("AbCdEf123456"),
      remainingMs: fc.nat(),
      bodyBytes: fc.nat(limits.jobBodyBytesMax),
      sha256: fc.constant("0f".repeat(32)),
      cacheSalt: fc.constant("0f".repeat(16)),
      traceparent: fc.constant("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    },
    { requiredKeys: ["id", "kind", "remainingMs", "bodyBytes"] },
  );
  fc.assert(
    fc.property(head, (given) => {
      expect(decodeJobHead(written(given))).toEqual({ outcome: "head", head: given });
    }),
    { numRuns: 500 },
  );
});

test("a job's head is plain text in one line each, since that is what headers are", () => {
  fc.assert(
    fc.property(oddModel, (model) => {
      for (const value of Object.values(encodeHead({ ...plain, model }))) expect(value).toMatch(/^[\x20-\x7e]*$/);
    }),
  );
});

test.each<[string, object]>([
  ["id", { id: "short" }],
  ["id with a dot", { id: `${newToken().slice(1)}.` }],
  ["kind", { kind: "dance" }],
  ["time", { remainingMs: -1 }],
  ["time with a fraction", { remainingMs: 1.5 }],
  ["size", { bodyBytes: limits.jobBodyBytesMax + 1 }],
  ["hash", { sha256: "0F".repeat(32) }],
  ["flag", { whole: 1 }],
  ["empty model", { model: "" }],
  ["long model", { model: "m".repeat(257) }],
  ["salt", { cacheSalt: "x".repeat(65) }],
  ["missing id", { id: undefined }],
  ["missing kind", { kind: undefined }],
  ["missing time", { remainingMs: undefined }],
  ["missing size", { bodyBytes: undefined }],
  ["missing version", { version: undefined }],
])("a job's head is malformed when its %s is not what it must be", (_, wrong) => {
  expect(decodeJobHead(written(plain)).outcome).toBe("head");
  expect(decodeJobHead(written({ ...plain, ...wrong }))).toEqual(malformed);
});

test("a job's head of a later build of this version is read without the fields that this build does not know", () => {
  expect(decodeJobHead(written({ ...plain, fieldOfTomorrow: 1 }))).toEqual({ outcome: "head", head: plain });
});

test("a job's head of another version is told apart, whatever else it holds", () => {
  const version = frameVersion + 1;
  for (const head of [plain, {}, { ...plain, kind: "dance" }]) {
    expect(decodeJobHead(written({ ...head, version }))).toEqual({ outcome: "other-version", version });
  }
});

test("a job's head is malformed when its header is any text, and decoding it never throws", () => {
  fc.assert(
    fc.property(fc.oneof(fc.constant(undefined), fc.string({ unit: "binary" }), fc.json()), (header) => {
      expect(decodeJobHead(header)).toEqual(malformed);
      expect(decodePartHead(header)).toEqual(malformed);
    }),
  );
});

test("a part's head is read as it was written", () => {
  fc.assert(
    fc.property(fc.nat(limits.jobBodyBytesMax), (offset) => {
      const head = { id: newToken(), offset };
      expect(decodePartHead(written(head))).toEqual({ outcome: "head", head });
    }),
  );
});
