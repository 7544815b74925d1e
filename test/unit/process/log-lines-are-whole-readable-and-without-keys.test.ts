import { expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { createLog, logText } from "#shared/process/log.ts";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { scrub } from "#shared/process/clean-text.ts";
import { Nkey } from "#shared/protocol/nkey.ts";
import { joinLineText, newMachineKeyPair } from "#shared/protocol/pairing.ts";

const time = Date.UTC(2026, 0, 1, 12, 30, 5, 7);
const clockTime = `${new Date(time).toLocaleTimeString("en-GB")}.007`;

function shown(fields: Readonly<Record<string, unknown>>): string {
  const line = JSON.stringify({ level: 30, time, pid: 7, name: "gateway", ...fields });
  return logText(`${line}\n`, { coloured: false });
}

test("a line begins with the local time, the level and the message, and its fields follow", () => {
  expect(shown({ port: 8484, url: "http://a/b?c", msg: "gateway listens" })).toBe(
    `${clockTime} INFO  gateway listens port=8484 url=http://a/b?c\n`,
  );
  expect(shown({ level: 50, reason: "it is away", codes: ["a"], none: null, msg: "failed" })).toBe(
    `${clockTime} ERROR failed reason="it is away" codes=["a"] none=null\n`,
  );
});

test("an error shows its stack on lines of its own", () => {
  const err = { type: "Error", message: "it broke", stack: "Error: it broke\n    at a.ts:1:1" };
  expect(shown({ level: 40, err, msg: "oh" })).toBe(`${clockTime} WARN  oh\n  Error: it broke\n      at a.ts:1:1\n`);
});

test("a level has a colour where the terminal shows any", () => {
  const line = JSON.stringify({ level: 50, time, msg: "failed" });
  expect(logText(line, { coloured: true })).toBe(`${clockTime} \u001b[31mERROR\u001b[0m failed\n`);
});

test("a text of another host neither ends its line nor controls the terminal", () => {
  const hostile = "a\n\u001b[2J\u009b1m\u202eb";
  const text = shown({ reason: hostile, [hostile]: 1, msg: hostile, err: { stack: `${hostile}\r\nnext` } });
  expect(text.split("\n").map((line) => line.trim())).toHaveLength(5);
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
});

test.each(["json", "text"] as const)("a key is scrubbed from a log in %s", (format) => {
  const key = mintKeyToken().reveal();
  let written = "";
  const log = createLog({ level: "info", name: "test", format, write: (line) => void (written += line) });
  log.info({ key, header: `Bearer ${key}`, err: new Error(`no ${key}`) }, `with ${key}`);
  log.child({ [key]: 1 }).warn(encodeURIComponent(key).replace("_", "%5F"));
  expect(written).toContain("with [key]");
  expect(written).not.toContain(key.slice(24, 40));
});

test("a log that is no terminal is JSON unless configured", () => {
  let written = "";
  createLog({ level: "info", name: "test", write: (line) => void (written += line) }).info("hello");
  expect(JSON.parse(written)).toMatchObject({ level: 30, msg: "hello" });
});

const logModule = new URL("../../../shared/process/log.ts", import.meta.url).href;

/** Says something at once, in the next turns, and right before its end. */
const script = (end: string): string => `
  const { createLog } = await import(${JSON.stringify(logModule)});
  const log = createLog({ level: "info", name: "test" });
  log.info("at once");
  setImmediate(() => {
    log.info("soon after");
    setImmediate(() => {
      log.info("at the end");
      ${end}
    });
  });
`;

test.each([
  ["by itself", "", 0],
  ["on purpose", "process.exit(7);", 7],
  ["of a fault", 'throw new Error("it broke");', 1],
  ["of a promise that nobody waits for", 'void Promise.reject(new Error("it broke"));', 1],
])("a process that ends %s has written all of its lines, in their order and once", (_how, end, code) => {
  const { stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script(end)], {
    encoding: "utf8",
  });
  const said = stderr.split("\n").filter((line) => line.startsWith("{"));
  expect(said.map((line) => JSON.parse(line).msg)).toEqual(["at once", "soon after", "at the end"]);
  expect(status).toBe(code);
});

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
      for (let done = 0; done < times; done += 1)
        written = done === 0 ? encode(written) : written.replaceAll("%", "%25");
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
