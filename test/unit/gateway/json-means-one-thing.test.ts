import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { jsonDepthMax, jsonKeysMax, jsonValuesMax, readJsonObject } from "../../../services/gateway/http/read-json.ts";

interface Told {
  readonly code: string;
  readonly param: string | undefined;
  readonly message: string;
}

/** The object in a body, or what is said of the body: its fault's code, where it is and the words. */
function outcomeOf(body: string | Uint8Array): { read?: object; told?: Told } {
  try {
    return { read: readJsonObject(Buffer.from(body)) };
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown;
    const { code, param, message } = thrown;
    return { told: { code, param, message } };
  }
}

const told = (body: string | Uint8Array): Told | undefined => outcomeOf(body).told;
const read = (body: string | Uint8Array): object | undefined => outcomeOf(body).read;

/** At the end of a body that is right up to there. */
const after = (pairs: string): string =>
  `{"model":"m","messages":[{"role":"user"},{"content":[{"text":"a"},{${pairs}}]}]}`;
const place = "messages[1].content[1]";

test.each([
  ["model", '{"model":"a","model":"b"}'],
  ["model", '{"model":"a","x":[1,{"y":{}}],"mod\\u0065l":"a"}'],
  [`${place}.a`, after('"a":1,"b":{"c":1},"a":1')],
  [`${place}.é`, after('"é":1,"\\u00e9":2')],
  [`${place}.b[2].c`, after('"a":{"a":1},"b":["a","a",{"c":"a","c":"a"}]')],
  ["b.a", '{"a":1,"b":{"a":1,"c":{"a":2},"a":3}}'],
])("a key that an object has twice is refused where it comes again: %s in %s", (param, body) => {
  expect(told(body)).toEqual({ code: "invalid_json", param, message: expect.stringContaining(`'${param}'`) });
});

test("a key that an object has twice is none when objects beside or within each other have it, or texts look like keys", () => {
  expect(
    told('{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}],"c":"a\\":","d":{"x":"\\"a\\":1,\\"a\\":2"},"":1}'),
  ).toBeUndefined();
});

test("a key that an object has twice is found in any JSON that has one, and in no other", () => {
  const key = fc.constantFrom("a", "b", "c", "__", "é");
  const { body } = fc.letrec<{ body: Written; value: Written }>((tie) => ({
    value: fc.oneof({ depthSize: "small" }, fc.constant({ text: "1", repeats: false }), tie("body")),
    body: fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map(written),
  }));
  fc.assert(
    fc.property(body, ({ text, repeats }) => {
      expect(told(text)?.code).toBe(repeats ? "invalid_json" : undefined);
    }),
    { numRuns: 2_000 },
  );
});

interface Written {
  readonly text: string;
  readonly repeats: boolean;
}

function written(fields: readonly (readonly [string, Written])[]): Written {
  const text = `{${fields.map(([name, value]) => `"${name}":${value.text}`).join()}}`;
  const names = new Set(fields.map(([name]) => name));
  return { text, repeats: names.size < fields.length || fields.some(([, value]) => value.repeats) };
}

test.each([
  ["__proto__", '{"__proto__":{"polluted":1}}'],
  ["__proto__", '{"\\u005f_proto__":{"polluted":1}}'],
  [`${place}.__proto__`, after('"__proto__":1')],
  [`${place}.constructor`, after('"constructor":{"prototype":{"polluted":1}}')],
  [`${place}.constructor`, after('"constr\\u0075ctor":{"prot\\u006ftype":1}')],
])("a name that reaches into other objects is refused: %s in %s", (param, body) => {
  expect(told(body)).toMatchObject({ code: "invalid_value", param });
  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

test("a name that reaches into other objects may well be a property of a tool's schema where it does not", () => {
  const properties =
    '{"constructor":{"type":"string"},"prototype":{"type":"string"},"toString":{},"hasOwnProperty":{}}';
  const body = `{"parameters":{"properties":${properties}}}`;
  expect(JSON.stringify(read(body))).toBe(body);
});

test.each([
  ["a", '{"a":"\\ud83d"}'],
  ["a", '{"a":"\\ude00\\ud83d"}'],
  ["a[1]", '{"a":["","x\\uDC00y"]}'],
  ["x\ufffd", '{"x\\ud83d":1}'],
])("text with half a character is refused: %s in %s", (param, body) => {
  expect(told(body)).toMatchObject({ code: "invalid_value", param });
});

test("text of whole characters, and of control characters, is read as it is", () => {
  const body = '{"a":"\\ud83d\\ude00\\u0000\\u001b[31m\\u202e\\u2028"}';
  expect(read(body)).toEqual({ a: "😀\u0000\u001b[31m\u202e\u2028" });
});

test.each([["1e400"], ["-1E+400"], ["1e-400"], ["0.1e-999"], ["1".repeat(200)], [`0.${"0".repeat(200)}`]])(
  "a number that would become another one is refused: %s",
  (number) => {
    expect(told(after(`"a":[0,${number}]`))).toMatchObject({ code: "invalid_value", param: `${place}.a[1]` });
  },
);

test("a number that is a safe integer is written again with all of its digits", () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (integer) => {
      expect(JSON.stringify(read(`{"a":[${integer}],"b":7}`))).toBe(`{"a":[${integer}],"b":7}`);
    }),
  );
});

test("a number that is no more than rounded is read", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      const body = `{"a":${JSON.stringify(number)}}`;
      expect(read(body)).toEqual(JSON.parse(body));
    }),
  );
  for (const number of ["-0", "0e5", "0.0", "1E5", "0.12345678901234567890", "9007199254740992", "1e-7"]) {
    expect(told(`{"a":${number}}`)).toBeUndefined();
  }
});

test.each([
  ['{"a":1,}', "line 1, column 8"],
  ["{'a':1}", "line 1, column 2"],
  ['{"a":NaN}', "line 1, column 6"],
  ['{"a":undefined}', "line 1, column 6"],
  ['{"a":-Infinity}', "line 1, column 7"],
  ['{"a":1} // all', "line 1, column 9"],
  ['{\n  "é": [1, 2 3]\n}', "line 2, column 14"],
  ['{"a":"\u0001"}', "line 1, column 7"],
  ['{"a":"\\x"}', "line 1, column 8"],
  ['{"a":01}', "line 1, column 7"],
  ['{"a":.5}', "line 1, column 6"],
  ['{"a":tru}', "line 1, column 9"],
  ["{}{}", "line 1, column 3"],
  ['{"a":[1}', "line 1, column 8"],
  ['{"a" 1}', "line 1, column 6"],
  [",", "line 1, column 1"],
  ['{"a":"\\ud8"}', "line 1, column 11"],
  ["\u00a0{}", "line 1, column 1"],
])("bytes that are no JSON are told where they stop being it: %j", (body, where) => {
  expect(told(body)).toEqual({
    code: "invalid_json",
    param: undefined,
    message: `The request's body is not valid JSON from ${where} on.`,
  });
});

test.each(['{"a":1', '{"a":"x', "{", '{"a":"x\\', '{"a":', '{"a":[1,'])(
  "bytes that are no JSON are told that they end too early: %j",
  (body) => {
    expect(told(body)?.message).toBe("The request's body is not valid JSON: it ends too early.");
  },
);

test("bytes that are no JSON are told at which byte they are not UTF-8", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.nat(3), (text, copies) => {
      const fine = Buffer.from(text.repeat(1 + copies * 300));
      const body = Buffer.concat([fine, Buffer.of(0xff), fine]);
      expect(told(body)?.message).toContain(`begins at byte ${fine.byteLength + 1}.`);
    }),
  );
});

test("a path is cut where names are long, and shows nothing that cannot be seen", () => {
  const long = "x".repeat(1_000_000);
  expect(told(`{"${long}":{"__proto__":1}}`)?.param).toBe(`${"x".repeat(64)}….__proto__`);
  const deep = `{"${"y".repeat(60)}":`.repeat(50);
  const { param = "", message = "" } = told(`${deep}{"__proto__":1}${"}".repeat(50)}`) ?? {};
  expect([param.length, message.length < 800]).toEqual([513, true]);
  expect(told('{"\\u001b[31m\\n\\u202ea":"\\ud800"}')?.param).toBe("\ufffd[31m\ufffd\ufffda");
});

const nested = (open: string, levels: number, close: string): string => open.repeat(levels) + close.repeat(levels);
const tooMuch = (said: RegExp): object => ({ code: "invalid_json", message: expect.stringMatching(said) });

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
        const { read: object, told: refusal } = outcomeOf(text);
        let parsed: unknown;
        try {
          parsed = JSON.parse(text);
        } catch {
          expect(refusal?.code).toBe("invalid_json");
          return;
        }
        const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
        expect([object, refusal?.code]).toEqual(isObject ? [parsed, undefined] : [undefined, "invalid_type"]);
      },
    ),
    { numRuns: 3_000 },
  );
});

test.each<[string, string | Uint8Array, RegExp]>([
  ["empty", "", /no body/],
  ["cut short", '{"model":"llama3","mess', /not valid JSON/],
  ["no JSON", "model=llama3", /not valid JSON/],
  ["behind a byte order mark", "\ufeff{}", /byte order mark/],
  ["not UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), /not UTF-8/],
  ["UTF-16", Buffer.from("{}", "utf16le"), /not valid JSON/],
  ["a surrogate in UTF-8", Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), /not UTF-8/],
])("a request's body that is %s is refused, and the fault does not repeat it", (_, body, said) => {
  const { code, message = "" } = told(body) ?? {};
  expect(code).toBe("invalid_json");
  expect(message).toMatch(said);
  expect(message).not.toContain("llama3");
});

test("a request's body may be as deep as jsonDepthMax and no deeper, whatever it is made of", () => {
  const arrays = (levels: number): string => `{"a":${nested("[", levels - 1, "]")}}`;
  const objects = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;
  for (const deep of [arrays, objects]) {
    expect(read(deep(jsonDepthMax))).toEqual(JSON.parse(deep(jsonDepthMax)));
    expect(told(deep(jsonDepthMax + 1))).toMatchObject(tooMuch(/64.*jsonDepthMax/));
  }
  expect(told(nested("[", 1_000_000, "]"))).toMatchObject(tooMuch(/jsonDepthMax/));
});

test("a request's body may hold jsonValuesMax values and no more, so that a request of nothing but commas costs little", () => {
  const list = (values: number): string => `{"a":[${"1,".repeat(values - 3)}1]}`;
  expect(read(list(jsonValuesMax))).toEqual(JSON.parse(list(jsonValuesMax)));
  expect(told(list(jsonValuesMax + 1))).toMatchObject(tooMuch(/49152 values.*jsonValuesMax/));
});

test("a request's body may have jsonKeysMax keys in each object and no more in any", () => {
  const keys = (count: number): string => Array.from({ length: count }, (_, at) => `"k${at}":1`).join();
  const two = `{"a":{${keys(jsonKeysMax)}},"b":{${keys(jsonKeysMax)}},"c":[{${keys(jsonKeysMax)}}]}`;
  expect(read(two)).toEqual(JSON.parse(two));
  expect(told(`{"a":[1,{${keys(jsonKeysMax + 1)}}]}`)).toMatchObject(tooMuch(/2048 keys.*jsonKeysMax/));
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
