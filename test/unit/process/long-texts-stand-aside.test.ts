import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { endCharacters, putInLongTexts, takeOutLongTexts } from "#shared/process/long-texts.ts";
import { longText, writtenIn } from "./texts-as-written.ts";

const half = (text: string): string => text.slice(0, endCharacters) + text.slice(-endCharacters);

describe("a long text of JSON", () => {
  test("is told of without being read as reading it would tell, however it is written", () => {
    fc.assert(
      fc.property(longText, fc.nat(), fc.nat(3), (text, how, offset) => {
        const written = `{"a":[1],"b":"short","c":"${writtenIn(text, how)}"}`;
        // Bytes may begin anywhere in memory.
        const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(written)]).subarray(offset);
        const short = takeOutLongTexts(bytes);
        expect(short?.texts).toHaveLength(1);
        const [taken] = short?.texts ?? [];
        expect(taken?.length).toBe(text.length);
        expect(taken?.read()).toBe(text);
        expect(taken?.ends()).toBe(text.length <= 2 * endCharacters ? text : half(text));
        expect(short && putInLongTexts(short.json.toString(), short.texts)?.toString()).toBe(written);
      }),
      { numRuns: 400 },
    );
  });

  const a = "a".repeat(5_000);
  test.each<[string, string]>([
    ["that does not end", `{"a":"${a}`],
    ["that ends in a backslash", `{"a":"${a}\\`],
    ["that breaks off in an escape", `{"a":"${a}\\u12`],
    ["with a line break in it", `{"a":"${a}\n${a}"}`],
    ["with an escape that there is not", `{"a":"${a}\\x"}`],
    ["with an escape that is none", `{"a":"${a}\\u12g4"}`],
    ["with the first half of a character alone", `{"a":"${a}\\ud83d"}`],
    ["with the first half of a character before another", `{"a":"${a}\\ud83d\\u0041"}`],
    ["with the second half of a character alone", `{"a":"${a}\\ude00"}`],
  ])("%s is left to whoever reads the whole", (_, json) => {
    expect(takeOutLongTexts(Buffer.from(json))).toBeUndefined();
  });

  test("that is no UTF-8 is left to whoever reads the whole", () => {
    expect(takeOutLongTexts(Buffer.from(`{"a":"${a}\xff"}`, "latin1"))).toBeUndefined();
  });

  test("stays where it is in all but the fields that are named, if any are", () => {
    const json = JSON.stringify({ a: { b: a }, says: [a], [a]: 1, "x\\": a, b: `"b":"${a}`, c: [{ c: a, ab: a }] });
    const short = takeOutLongTexts(Buffer.from(json), ["b", "c"]);
    expect(short?.texts.map((text) => text.read())).toEqual([a, `"b":"${a}`, a]);
    expect(short && putInLongTexts(short.json.toString(), short.texts)?.toString()).toBe(json);
    expect(takeOutLongTexts(Buffer.from(json), ["d"])).toBeUndefined();
  });

  test("is put into its place and no other, in its turn", () => {
    const json = JSON.stringify({ a, b: `:"<a long text>"`, c: a.replaceAll("a", "c") });
    const short = takeOutLongTexts(Buffer.from(json));
    expect(short && putInLongTexts(short.json.toString(), short.texts)?.toString()).toBe(json);
  });

  test("is not put in where there are more places than texts, or fewer", () => {
    const short = takeOutLongTexts(Buffer.from(JSON.stringify({ a, b: "<a long text>" })));
    expect(short && putInLongTexts(short.json.toString(), short.texts)).toBeUndefined();
    expect(short && putInLongTexts("{}", short.texts)).toBeUndefined();
  });
});
