import { expect, test } from "vitest";
import { crossOrigins } from "../../../../services/gateway/http/cross-origin.ts";

test.each([
  ["https://app.example", ["https://app.example"]],
  ["https://app.example, http://localhost:5173", ["https://app.example", "http://localhost:5173"]],
  ["http://127.0.0.1:3000", ["http://127.0.0.1:3000"]],
  ["http://[::1]:3000", ["http://[::1]:3000"]],
  ["app://obsidian.md,chrome-extension://abcdefgh", ["app://obsidian.md", "chrome-extension://abcdefgh"]],
  ["*", ["*"]],
])("the origins of web apps are taken as %s", (text, origins) => {
  expect(crossOrigins.parse(text)).toEqual(origins);
});

test.each([
  ["https://app.example/", "with a path, which no browser says"],
  ["https://app.example/chat", "with a path"],
  ["https://App.example", "in another case than browsers write"],
  ["https://app.example:443", "with the port that goes without saying"],
  ["https://*.example", "as a pattern, which would match nothing"],
  ["https://user@app.example", "with a user"],
  ["app.example", "without a scheme"],
  ["null", "that every page in a sandbox has"],
  ["https://app.example,", "with nothing behind a comma"],
  ["*,https://app.example", "beside any"],
  ["https://app.example https://b.example", "without a comma"],
])("the origins of web apps are refused: %s", (text) => {
  const { success, error } = crossOrigins.safeParse(text);
  expect(success).toBe(false);
  expect(error?.issues[0]?.message).toBe(
    "must be origins such as https://app.example or http://localhost:5173, without a path and with commas between, or * alone for any",
  );
});
