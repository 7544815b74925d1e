import { expect, test } from "vitest";
import { z } from "zod";
import { Fault, misfitOf, originOf } from "#shared/fault/fault.ts";

const secret = "my doctor says it is gout";

/** Returns the value that a function throws. */
function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("nothing was thrown");
}

test.each<[string, () => unknown]>([
  ["a parser", () => JSON.parse(secret)],
  ["a URL", () => new URL(secret)],
  ["an argument", () => new TextDecoder(secret)],
  ["a number", () => BigInt(secret)],
  ["a library", () => new Intl.DateTimeFormat("en", { timeZone: secret })],
  ["a message of several lines", () => thrower(new Error(`one\n    at ${secret}\n${secret}`))],
  ["a text", () => thrower(secret)],
])("the reason of an unexpected error says where it came from, and quotes nothing: %s", (_, act) => {
  const fault = Fault.from(thrownBy(act));
  expect(fault.code).toBe("internal_error");
  expect(fault.reason).toMatch(/^\w*Error\b|^a string was thrown$/);
  expect(fault.reason).not.toContain("gout");
});

test("the origin of an unexpected error names its code and its place", () => {
  const origin = originOf(thrownBy(() => new URL(secret)));
  expect(origin).toMatch(/^TypeError \[ERR_INVALID_URL\]\n {4}at /);
  expect(origin).toContain("a-reason-quotes-nothing.test.ts");
});

test("a misfit names the field and the kind of problem, and no key that somebody else chose", () => {
  const schema = z.object({
    messages: z.array(z.object({ content: z.string() })),
    bias: z.record(z.string(), z.number()),
  });
  const misfit = (value: unknown): string => {
    const { error } = schema.safeParse(value);
    return error === undefined ? "" : misfitOf(error);
  };
  expect(misfit({ messages: [{ content: 7 }], bias: {} })).toBe("messages.0.content: invalid_type");
  expect(misfit({ messages: [], bias: { [secret]: secret } })).toBe("bias.…: invalid_type");
});

test("the message of a failure is its reason where no other is given, and that of a refusal is not", () => {
  const message = "The runtime said nothing.";
  expect(new Fault("upstream_error", { message }).reason).toBe(message);
  expect(new Fault("upstream_error", { message, internal: "why" }).reason).toBe("why");
  expect(new Fault("invalid_value", { message: `'stop' is ${secret}` }).reason).toBeUndefined();
});

function thrower(what: unknown): never {
  throw what;
}
