import { describe, expect, test } from "vitest";
import { readSources } from "./read-sources.ts";
import { findSlowExpressions } from "./slow-expressions.ts";

const planted = (text: string) => [{ path: "services/gateway/http/x.ts", text }];

describe("the time of a regular expression", () => {
  test("grows no faster than its input in every file of the product", () => {
    expect(findSlowExpressions(readSources())).toEqual([]);
  });

  test.each([
    [String.raw`const header = /^([\w-]+):[ \t]*(.*?)[ \t]*$/;`, "grows faster"],
    [String.raw`text.replaceAll(/^\uFFFD+|\uFFFD+$/g, "");`, "grows faster"],
    ["const nested = /(?:a+)+b/;", "grows faster"],
    ["const made = new RegExp(given);", "is made at run time"],
    ["const made = RegExp(given);", "is made at run time"],
  ])("is judged where %s is planted", (text, why) => {
    expect(findSlowExpressions(planted(text), [])).toEqual([expect.stringContaining(why)]);
  });

  test("may grow faster where the bound of its input is named, and only while it stands there", () => {
    const [source] = planted("const made = new RegExp(given);");
    const bounded = [{ path: source?.path ?? "", expression: "new RegExp(given", bound: "one name" }];
    expect(findSlowExpressions(planted(source?.text ?? ""), bounded)).toEqual([]);
    expect(findSlowExpressions(planted("const plain = /a/;"), bounded)).toEqual([expect.stringContaining("no longer")]);
  });
});
