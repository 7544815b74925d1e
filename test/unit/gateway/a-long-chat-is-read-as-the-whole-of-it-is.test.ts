import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Asked } from "../../../services/gateway/asked/asked.ts";
import { readAsked, readWholeChat } from "../../../services/gateway/asked/read-asked.ts";
import { readLongChat } from "../../../services/gateway/asked/read-long-chat.ts";
import { longText, writtenIn } from "../process/texts-as-written.ts";

const role = fc.constantFrom("user", "system", "assistant");
const short = fc.constantFrom("", "Hello", "<a long text>", ':"<a long text>"', "“a”\n");
const message = fc
  .tuple(role, fc.oneof({ weight: 3, arbitrary: longText }, { weight: 1, arbitrary: short }), fc.nat())
  .map(([by, text, how]) => `{"role":"${by}","content":"${writtenIn(text, how)}"}`);
const fields = fc.constantFrom(
  '"stream":true',
  '"n":2,"seed":7',
  '"max_tokens": 5',
  '"user":"ann"',
  '"n":0',
  '"model":"b"',
);
const long = "x".repeat(17_000);
const chat = fc
  .tuple(fc.array(message, { minLength: 1, maxLength: 4 }), fc.array(fields, { maxLength: 1 }), fc.boolean())
  .map(([messages, more, first]) => {
    const all = `"messages" : [${[...messages, `{"role":"user","content":"${long}"}`].join(", ")}]`;
    return `{"model":"llama3",${(first ? [...more, all] : [all, ...more]).join(",")}}`;
  });
/** Something is put in at a place, in place of so many bytes. */
const bend = fc.record({
  at: fc.nat(),
  takes: fc.nat(2),
  puts: fc.constantFrom(
    "",
    '"',
    "\\",
    "\n",
    "\\ud83d",
    "\\ude00",
    "\\ud83d\\ude00",
    "\xff",
    "\xc3",
    ",",
    "}",
    "x",
    "\\u00",
  ),
});

type Told = Omit<Asked, "body" | "sha256"> & { readonly body: unknown };

/** All that is said, with the body as its reader will have it, and a ceiling that does not depend on how texts are escaped. */
function told({ body, sha256, ceiling, ...rest }: Asked): Told {
  expect(sha256).toBe(body.byteLength > limits.partBytes ? createHash("sha256").update(body).digest("hex") : undefined);
  const allowance = { ...ceiling, promptTokens: ceiling.promptTokens - body.byteLength };
  return { ...rest, ceiling: allowance, body: JSON.parse(Buffer.from(body).toString()) };
}

describe("a chat with long texts", () => {
  test("is read without them as the whole of it is, or not at all", () => {
    let read = 0;
    fc.assert(
      fc.property(chat, fc.option(bend, { freq: 2 }), (json, bent) => {
        let bytes = Buffer.from(json);
        if (bent !== null) {
          const at = bent.at % bytes.byteLength;
          const puts = Buffer.from(bent.puts, "latin1");
          bytes = Buffer.concat([bytes.subarray(0, at), puts, bytes.subarray(at + bent.takes)]);
        }
        const asked = readLongChat(Buffer.from(bytes));
        if (asked === undefined) return;
        read += 1;
        expect(told(asked)).toEqual(told(readWholeChat(bytes)));
      }),
      { numRuns: 600 },
    );
    expect(read).toBeGreaterThan(100);
  });

  test("goes on as its client wrote it, with the hash of what goes on", () => {
    const text = `caf\\u00e9 \\/ ${"“ü”".repeat(100_000)}`;
    const json = `{ "model": "llama3", "messages": [{"content": "${text}", "role": "user"}], "seed": 1 }`;
    const { body, sha256, model } = readAsked("chat", Buffer.from(json));
    expect(model).toBe("llama3");
    expect(Buffer.from(body).toString()).toBe(`{"seed":1,"messages":[{"content":"${text}","role":"user"}]}`);
    expect(sha256).toBe(createHash("sha256").update(body).digest("hex"));
  });

  test.each<[string, string, object]>([
    ["is no JSON after it", `"${long}"]}`, { code: "invalid_json" }],
    ["holds half of a character", `"${long}\\ud83d"}]}`, { code: "invalid_value", param: "messages[0].content" }],
    ["is said by nobody", `"${long}"}],"n":0}`, { code: "integer_below_min_value", param: "n" }],
  ])("that %s is refused as ever", (_, rest, fault) => {
    const bytes = Buffer.from(`{"model":"llama3","messages":[{"role":"user","content":${rest}`);
    let thrown: unknown;
    try {
      readAsked("chat", bytes);
    } catch (error) {
      thrown = error;
    }
    expect(Fault.from(thrown)).toMatchObject(fault);
  });
});
