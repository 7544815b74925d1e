import { expect, test } from "vitest";
import { readSources } from "./read-sources.ts";

/** The files that print, send or write the text of an API key. */
const mayReveal = [
  "services/cli/connect/connect.ts",
  "services/cli/site/chat-client.ts",
  "services/cli/site/operations-port.ts",
  "services/cli/site/up-state.ts",
  "shared/admin/key-operations.ts",
  "shared/admin/member-operations.ts",
];

test("only the files of this list read the text of an API key", () => {
  const revealing = readSources().filter(({ path, text }) => !path.startsWith("test/") && text.includes(".reveal()"));
  expect(revealing.map(({ path }) => path).toSorted()).toEqual(mayReveal);
});
