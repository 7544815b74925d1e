import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { readJsonObject, jsonDepthMax, jsonKeysMax, jsonValuesMax } from "../../../services/gateway/http/read-json.ts";

/** What comes of a body: the object, or the code and message of its fault. */
function read(body: string | Uint8Array): unknown {
  try {
    return readJsonObject(Buffer.from(body));
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown;
    return `${thrown.code}: ${thrown.message}`;
  }
}
const nested = (open: string, levels: number, close: string): string => open.repeat(levels) + close.repeat(levels);

test("a request's body is read as JSON.parse reads it, when it is an object", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 6 })), (object) => {
      const text = JSON.stringify(object);
      fc.pre(!text.includes('"__proto__"'));
      expect(read(text)).toEqual(JSON.parse(text));
      const spaced = JSON.stringify(object, null, 3);
      expect(read(spaced)).toEqual(JSON.parse(spaced));
    }),
    { numRuns: 500 },
  );
});

test("a request's body is taken or refused like by JSON.parse, whatever text it is", () => {
  const pieces = fc.constantFrom(...'{}[]"\\:,1 \n'.split(""), "true", "null", '"a":', "é", "\\u0041");
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 30 }).map((all) => all.join("")),
      (text) => {
        const told = read(text);
        let parsed: unknown;
        try {
          parsed = JSON.parse(text);
        } catch {
          expect(told).toMatch(/^invalid_json: /);
          return;
        }
        const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
        expect(told).toEqual(isObject ? parsed : expect.stringMatching(/^invalid_type: /));
      },
    ),
    { numRuns: 3_000 },
  );
});

test.each<[string, string | Uint8Array, RegExp]>([
  ["empty", "", /no body/],
  ["cut short", '{"model":"llama3","mess', /not valid JSON/],
  ["no JSON", "model=llama3", /not valid JSON/],
  ["two objects", "{}{}", /not valid JSON/],
  ["behind a byte order mark", "\ufeff{}", /byte order mark/],
  ["not UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), /not UTF-8/],
  ["UTF-16", Buffer.from("{}", "utf16le"), /not valid JSON/],
  ["a surrogate in UTF-8", Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), /not UTF-8/],
])("a request's body that is %s is refused, and the fault does not repeat it", (_, body, message) => {
  const told = read(body);
  expect(told).toMatch(/^invalid_json: /);
  expect(told).toMatch(message);
  expect(told).not.toContain("llama3");
});

test("a request's body may be as deep as jsonDepthMax and no deeper, whatever it is made of", () => {
  const arrays = (levels: number): string => `{"a":${nested("[", levels - 1, "]")}}`;
  const objects = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;
  for (const deep of [arrays, objects]) {
    expect(read(deep(jsonDepthMax))).toEqual(JSON.parse(deep(jsonDepthMax)));
    expect(read(deep(jsonDepthMax + 1))).toMatch(/^invalid_json: .*64.*jsonDepthMax/);
  }
  expect(read(nested("[", 1_000_000, "]"))).toMatch(/jsonDepthMax/);
});

test("a request's body may hold jsonValuesMax values and no more, so that a request of nothing but commas costs little", () => {
  const list = (values: number): string => `{"a":[${"1,".repeat(values - 3)}1]}`;
  expect(read(list(jsonValuesMax))).toEqual(JSON.parse(list(jsonValuesMax)));
  expect(read(list(jsonValuesMax + 1))).toMatch(/^invalid_json: .*49152 values.*jsonValuesMax/);
});

test("a request's body may have jsonKeysMax keys in each object and no more in any", () => {
  const keys = (count: number): string => Array.from({ length: count }, (_, place) => `"k${place}":1`).join();
  const two = `{"a":{${keys(jsonKeysMax)}},"b":{${keys(jsonKeysMax)}},"c":[{${keys(jsonKeysMax)}}]}`;
  expect(read(two)).toEqual(JSON.parse(two));
  expect(read(`{"a":[1,{${keys(jsonKeysMax + 1)}}]}`)).toMatch(/^invalid_json: .*2048 keys.*jsonKeysMax/);
});

test("a request's body is not taken for deep by brackets in its texts, also behind escaped quotes", () => {
  const brackets = nested("[{", 200, "}]");
  fc.assert(
    fc.property(fc.array(fc.constantFrom("\\", '"', "[", "{", "a"), { maxLength: 60 }), (odd) => {
      const object = { [`${odd.join("")}${brackets}`]: `${brackets}${odd.join("")}`, after: [[]] };
      expect(read(JSON.stringify(object))).toEqual(object);
    }),
  );
});
