import * as fc from "fast-check";
import { expect, test } from "vitest";
import { tokenCountMax } from "#shared/protocol/answer-events.ts";
import {
  decodeFrame,
  encodeFrame,
  type FrameKind,
  framePrefixBytes,
  frameVersion,
  isTerminal,
} from "#shared/protocol/frame.ts";
import { modelId } from "#shared/protocol/model.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { decodeJobHead, decodePartHead, encodeHead, headHeader, type JobHead, jobKinds } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { decodeMediaBody, encodeMediaBody, type MediaBody } from "#shared/protocol/media-body.ts";

const kinds = ["accept", "reject", "part-ack", "data", "end", "fault", "beat"] as const satisfies readonly FrameKind[];
const nothing = new Uint8Array();
const u32 = fc.oneof(fc.nat(), fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1));

test("a frame is read as it was written, its payload byte for byte, wherever in a buffer it lies", () => {
  const head = fc.record({ kind: fc.constantFrom(...kinds), sequence: u32, outputTokens: fc.nat(tokenCountMax) });
  const anyPayload = fc.uint8Array({ maxLength: 2_000 });
  fc.assert(
    fc.property(head, anyPayload, fc.nat(40), (given, payload, at) => {
      const encoded = encodeFrame(given, payload);
      const elsewhere = new Uint8Array(at + encoded.byteLength + 3).fill(0xff);
      elsewhere.set(encoded, at);
      const decoded = decodeFrame(elsewhere.subarray(at, at + encoded.byteLength));
      if (decoded.outcome !== "frame") throw new Error(decoded.outcome);
      const { payload: read, ...rest } = decoded.frame;
      expect(rest).toEqual(given);
      expect(Buffer.from(payload).equals(read)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("a frame carries 0 for what it is not given", () => {
  expect(decodeFrame(encodeFrame({ kind: "accept" }, nothing))).toMatchObject({
    outcome: "frame",
    frame: { sequence: 0, outputTokens: 0 },
  });
});

test("a frame has the prefix that the wire names, so that other builds can read it", () => {
  const frame = encodeFrame({ kind: "data", sequence: 0x01020304, outputTokens: 5 }, Buffer.from("hi"));
  expect([...frame]).toEqual([2, 4, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0, 0x68, 0x69]);
  const codes = kinds.map((kind) => encodeFrame({ kind }, nothing)[1]);
  expect(codes).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

test("a frame ends a job as end or fault and as nothing else", () => {
  expect(kinds.filter(isTerminal)).toEqual(["end", "fault"]);
});

test("bytes that are no frame never throws, whatever the bytes, and is told apart", () => {
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    // Mostly a right version, since random bytes seldom have it.
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Uint8Array.of(frameVersion, ...bytes)),
  );
  fc.assert(
    fc.property(anything, (bytes) => {
      const { outcome } = decodeFrame(bytes);
      if (bytes.byteLength < framePrefixBytes) expect(outcome).toBe("malformed");
      else if (bytes[0] !== frameVersion) expect(outcome).toBe("other-version");
      else expect(outcome).toBe((bytes[1] ?? 0) >= 1 && (bytes[1] ?? 0) <= 7 ? "frame" : "unknown-kind");
    }),
    { numRuns: 2_000 },
  );
});

test("bytes that are no frame names the version when that is another", () => {
  const frame = encodeFrame({ kind: "data" }, nothing);
  frame[0] = 1;
  expect(decodeFrame(frame)).toEqual({ outcome: "other-version", version: 1 });
});

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

const body: MediaBody = {
  path: "/v1/audio/transcriptions",
  answer: "json",
  fields: { prompt: "Zo\u00eb", temperature: 0.5, stream: true, "timestamp_granularities[]": ["word"] },
  files: [
    { field: "file", name: "a.wav", type: "audio/wav", bytes: 3 },
    { field: "mask", name: "b", type: "image/png", bytes: 0 },
  ],
  contents: [new Uint8Array([0, 255, 13]), new Uint8Array()],
};

test("a body has its fields and the bytes of its files on the other side", () => {
  const encoded = encodeMediaBody(body);
  expect(encoded.byteLength).toBe(encoded.buffer.byteLength);
  expect(decodeMediaBody(encoded)).toEqual(body);
  // A job in one message lies within the memory of others.
  const within = Buffer.concat([Buffer.from("abc"), encoded]).subarray(3);
  const { contents = [], ...head } = decodeMediaBody(within) ?? {};
  expect({ ...head, contents: contents.map((each) => new Uint8Array(each)) }).toEqual(body);
});

test.each<[what: string, broken: Uint8Array | object]>([
  ["no byte", new Uint8Array()],
  ["a length beyond its end", new Uint8Array([255, 255, 255, 255, 123])],
  ["a byte too few", encodeMediaBody(body).subarray(0, -1)],
  ["a byte too many", Buffer.concat([encodeMediaBody(body), Buffer.from("a")])],
  ["another path", { ...body, path: "/v1/models" }],
  ["an unknown field of its head", { ...body, model: "a" }],
])("a body with %s is none", (_, broken) => {
  const bytes = broken instanceof Uint8Array ? broken : encodeMediaBody(broken as MediaBody);
  expect(decodeMediaBody(bytes)).toBeUndefined();
});
