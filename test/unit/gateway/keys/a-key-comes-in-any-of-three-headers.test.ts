import { expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { sentKey } from "../../../../services/gateway/keys/authenticate.ts";

const key = mintKeyToken("model").reveal();
const other = mintKeyToken("model").reveal();

test.each([
  ["the Authorization header", { authorization: `Bearer ${key}` }],
  ["x-api-key", { "x-api-key": key }],
  ["api-key", { "api-key": key }],
  ["the Authorization header, whatever another header holds", { authorization: `Bearer ${key}`, "x-api-key": other }],
  ["x-api-key beside a placeholder in Authorization", { authorization: "Bearer none", "x-api-key": key }],
  ["api-key beside an empty x-api-key", { "x-api-key": "", "api-key": key }],
])("the key is taken from %s", (_where, headers) => {
  expect(sentKey(headers)).toBe(key);
});

test("a request without these headers sent no key", () => {
  expect(sentKey({ authorization: "Basic YTpi" })).toBeUndefined();
  expect(sentKey({})).toBeUndefined();
});
