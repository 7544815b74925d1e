import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { createLog } from "#shared/process/log.ts";
import { scrub } from "#shared/process/clean-text.ts";
import { Nkey } from "#shared/protocol/nkey.ts";
import { joinLineText, newMachineKeyPair } from "#shared/protocol/pairing.ts";

/** How often a character is percent-encoded, and whether with small letters. */
const spelling = fc.record({ times: fc.integer({ min: 0, max: 3 }), small: fc.boolean() });

function encode(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}

/** The whole of a text percent-encoded, some of its characters first. */
function spelled(text: string, each: readonly { readonly times: number; readonly small: boolean }[]): string {
  return text
    .split("")
    .map((character, at) => {
      const { times = 0, small = false } = each[at % each.length] ?? {};
      let written = character;
      for (let time = 0; time < times; time += 1)
        written = time === 0 ? encode(written) : written.replaceAll("%", "%25");
      return small ? written.replaceAll(/%[\dA-F]{2}/g, (byte) => byte.toLowerCase()) : written;
    })
    .join("");
}

test("a key in a URL is not logged, whichever of its characters are percent-encoded, once or more often", () => {
  fc.assert(
    fc.property(fc.array(spelling, { minLength: 1 }), fc.constantFrom("model", "admin"), (each, kind) => {
      const written = spelled(mintKeyToken(kind).reveal(), each);
      const lines: string[] = [];
      const log = createLog({ level: "info", name: "test", write: (line) => void lines.push(line) });
      log.info({ path: `/v1/models/${written}/x`, url: `http://a/b?key=${written}&c=d` }, `at /${written}?a`);
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({
        path: "/v1/models/[key]/x",
        url: "http://a/b?key=[key]&c=d",
        msg: "at /[key]?a",
      });
    }),
  );
});

test("a bearer token in a URL is not logged when its space is percent-encoded", () => {
  expect(scrub("/a/Bearer%20sk-1234/b")).toBe("/a/[key]/b");
  expect(scrub("/a/bearer%2520sk-1234/b")).toBe("/a/[key]/b");
});

test("neither the secret of a join line nor the private key of a machine or of NATS is logged", () => {
  const secret = randomBytes(16);
  const line = joinLineText({ origin: "https://models.example.org", id: "k3v9Q2xLmT0a", secret });
  expect(scrub(`--join '${line}'`)).toBe("--join 'https://models.example.org/#k3v9Q2xLmT0a.[secret]'");
  expect(scrub(`/x?to=${encodeURIComponent(line)}`)).toBe("/x?to=[key]");
  const { seed, publicKey } = newMachineKeyPair();
  expect(scrub(JSON.stringify({ seed, publicKey }))).toBe(JSON.stringify({ seed: "[key]", publicKey }));
  for (const kind of ["O", "A"] as const) expect(scrub(`the file ${Nkey.make(kind).seed}`)).toBe("the file [key]");
});

test("the names of settings are logged as they are", () => {
  expect(scrub("(TRUNKLINE_CONNECTIONS_MAX) 5 %")).toBe("(TRUNKLINE_CONNECTIONS_MAX) 5 %");
});

test("percent signs in everything else are logged as they are", () => {
  for (const text of ['{"msg":"full to 90 %"}', "/v1/models/a%2Fb%", "%25%32%35 %zz 100%"])
    expect(scrub(text)).toBe(text);
});

test("a long line full of percent signs is looked through in time that grows with its length", () => {
  // One that looks at each character again and again would take longer than a test may.
  const line = "%25".repeat(300_000) + "a".repeat(300_000);
  expect(scrub(line)).toBe(line);
});
