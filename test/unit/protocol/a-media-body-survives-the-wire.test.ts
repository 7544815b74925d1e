import { expect, test } from "vitest";
import { decodeMediaBody, encodeMediaBody, type MediaBody } from "#shared/protocol/media-body.ts";

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
