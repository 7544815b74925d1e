import { headers as natsHeaders, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { readNatsHeaders } from "#shared/broker/nats-headers.ts";

const name = fc.stringMatching(/^[a-z-]{1,12}$/);
const value = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom("", " ", "a: b", "NATS/1.0", "::", "%0D%0A"),
);
const lines = fc.array(
  fc.tuple(
    name,
    value.filter((text) => !/[\r\n]/.test(text) && text.isWellFormed()),
  ),
);

/** A message as the library keeps one: its headers stand right before its data, among other bytes of the connection. */
function messageOf(told: MsgHdrs, options: { readonly tellsSize: boolean; readonly data: Uint8Array }): Msg {
  const head = Buffer.from((told as MsgHdrs & { encode(): Uint8Array }).encode());
  const all = Buffer.concat([Buffer.from("HMSG a 1 2 3\r\n"), head, options.data, Buffer.from("\r\n")]);
  const begin = "HMSG a 1 2 3\r\n".length + head.byteLength;
  const data = all.subarray(begin, begin + options.data.byteLength);
  const [subject, reply] = ["a.b", "c"];
  const size = (): number => subject.length + reply.length + head.byteLength + data.byteLength;
  return { subject, reply, data, headers: told, ...(options.tellsSize && { size }) } as unknown as Msg;
}

test("of each name the first value is read, whether the bytes are found or not", () => {
  fc.assert(
    fc.property(lines, fc.boolean(), fc.uint8Array({ maxLength: 30 }), (given, tellsSize, data) => {
      const told = natsHeaders();
      for (const [each, text] of given) told.append(each, text);
      const read = readNatsHeaders(messageOf(told, { tellsSize, data }));
      expect(Object.fromEntries(read)).toEqual(Object.fromEntries(told.keys().map((each) => [each, told.get(each)])));
    }),
  );
});

test("the bytes are read where they are, and nothing is asked of the library", () => {
  const told = natsHeaders();
  told.append("tl-job", "1");
  const message = messageOf(told, { tellsSize: true, data: Buffer.from("{}") });
  Object.defineProperty(message, "headers", { get: () => expect.unreachable() });
  expect(readNatsHeaders(message).get("tl-job")).toBe("1");
});
