import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Command,
  controlLineBytesMax,
  ProtocolParser,
} from "../../../../services/gateway/tunnels/protocol-parser.ts";

const payloadBytesMax = 10_000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heldBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function parserOf(...chunks: readonly (string | Uint8Array)[]): ProtocolParser {
  const parser = new ProtocolParser();
  parser.payloadBytesMax = payloadBytesMax;
  for (const chunk of chunks) parser.push(Buffer.from(chunk));
  return parser;
}

function commandsIn(parser: ProtocolParser): Command[] {
  const commands: Command[] = [];
  for (let command = parser.next(); command !== undefined; command = parser.next()) commands.push(command);
  return commands;
}

function wireText(command: Command): Buffer {
  switch (command.op) {
    case "connect":
      return Buffer.from(`CONNECT ${command.json}\r\n`, "latin1");
    case "subscribe":
      return Buffer.from(`SUB ${command.pattern} ${command.sid}\r\n`);
    case "unsubscribe":
      return Buffer.from(`UNSUB ${command.sid}\r\n`);
    case "ping":
    case "pong":
      return Buffer.from(`${command.op.toUpperCase()}\r\n`);
    case "publish": {
      const { subject, reply, headers, data } = command.message;
      const place = reply === undefined ? subject : `${subject} ${reply}`;
      const end = Buffer.from("\r\n");
      if (headers === undefined) return Buffer.concat([Buffer.from(`PUB ${place} ${data.length}\r\n`), data, end]);
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const block = Buffer.from(`NATS/1.0\r\n${lines.join("")}\r\n`);
      const sizes = `${block.length} ${block.length + data.length}`;
      return Buffer.concat([Buffer.from(`HPUB ${place} ${sizes}\r\n`), block, data, end]);
    }
  }
}

const word = fc.stringMatching(/^[a-z0-9_-]{1,8}$/);
const subject = fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => words.join("."));
const sid = fc.nat({ max: 1e9 }).map(String);
const published = fc.record({
  subject,
  reply: fc.option(subject, { nil: undefined }),
  headers: fc.option(fc.dictionary(word, word, { maxKeys: 3 }), { nil: undefined }),
  data: fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.constantFrom("", "\r\n", "PING\r\n", "PUB a 1\r\nx\r\n").map((text) => new Uint8Array(Buffer.from(text))),
  ),
});
const command: fc.Arbitrary<Command> = fc.oneof(
  fc.constantFrom<Command>({ op: "ping" }, { op: "pong" }),
  fc.record({ op: fc.constant("connect"), json: fc.constantFrom("{}", `{"nkey":"U","boot":"b c"}`) }),
  fc.record({ op: fc.constant("subscribe"), pattern: subject, sid }),
  fc.record({ op: fc.constant("unsubscribe"), sid }),
  fc.record({ op: fc.constant("publish"), message: published }),
);

const plain = (commands: readonly Command[]): unknown =>
  commands.map((each) => {
    if (each.op !== "publish") return each;
    const { headers, data, ...rest } = each.message;
    return { ...rest, headers: headers && { ...headers }, data: Buffer.from(data).toString("latin1") };
  });

test("the commands of a tunnel are read unchanged, wherever their bytes are split", () => {
  const commands = fc.array(command, { maxLength: 12 });
  fc.assert(
    fc.property(commands, fc.array(fc.nat(), { maxLength: 30 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(wireText));
      const places = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
      const parser = parserOf();
      const read = places.slice(1).flatMap((place, at) => {
        parser.push(bytes.subarray(places[at], place));
        return commandsIn(parser);
      });
      expect(plain(read)).toEqual(plain(sent));
    }),
    { numRuns: 500 },
  );
});

test("the commands of a tunnel are copied: no chunk of a message is kept, and no later byte changes it", () => {
  const data = "0123456789".repeat(payloadBytesMax / 10);
  const parser = parserOf(`PUB a ${payloadBytesMax}\r\n${data[0]}`);
  const chunk = Buffer.alloc(1);
  const read = Array.from(`${data.slice(1)}\r\n`).flatMap((byte) => {
    chunk.write(byte);
    parser.push(chunk);
    return commandsIn(parser);
  });
  parser.push(Buffer.from("PUB b 1\r\nx\r\n"));
  expect(commandsIn(parser)).toHaveLength(1);
  expect(plain(read)).toEqual([{ subject: "a", reply: undefined, headers: undefined, data }]);
});

test("the commands of a tunnel take twice their bytes at most while they come a byte at a time", () => {
  const parser = parserOf();
  parser.payloadBytesMax = 1_000_000;
  parser.push(Buffer.from("PUB a 1000000\r\n"));
  const before = heldBytes();
  for (let sent = 0; sent < 1_000_000; sent += 1) {
    parser.push(Buffer.from("x"));
    parser.next();
  }
  expect(heldBytes() - before).toBeLessThan(4_000_000);
  parser.push(Buffer.from("\r\n"));
  expect(commandsIn(parser)).toHaveLength(1);
});

test("the commands of a tunnel of the largest size are read", () => {
  const data = "x".repeat(payloadBytesMax);
  const pattern = "p".repeat(1_024);
  expect(commandsIn(parserOf(`PUB a ${payloadBytesMax}\r\n${data}\r\nSUB ${pattern} 1\r\n`))).toHaveLength(2);
});

test.each([
  ["an unknown operation", "INFO {}\r\n", "Unknown Protocol Operation"],
  ["small letters", "ping\r\n", "Unknown Protocol Operation"],
  ["an empty line", "\r\n", "Unknown Protocol Operation"],
  ["more after a ping", "PING x\r\n", "Unknown Protocol Operation"],
  ["a line that ends without CR", "PING\n", "Parser Error"],
  ["two spaces", "SUB a  1\r\n", "Parser Error"],
  ["a queue group", "SUB a group 1\r\n", "Parser Error"],
  ["a limited subscription", "UNSUB 1 5\r\n", "Parser Error"],
  ["a subscription without a number", "SUB a\r\n", "Parser Error"],
  ["an empty token", "SUB a..b 1\r\n", "Invalid Subject"],
  ["a wildcard inside a token", "SUB a* 1\r\n", "Invalid Subject"],
  ["> before the end", "SUB a.>.b 1\r\n", "Invalid Subject"],
  ["a subject beyond its limit", `SUB ${"p".repeat(1_025)} 1\r\n`, "Invalid Subject"],
  ["a letter beyond ASCII", "SUB ä 1\r\n", "Invalid Subject"],
  ["a wildcard to publish to", "PUB a.* 1\r\nx\r\n", "Invalid Publish Subject"],
  ["a wildcard as a reply", "PUB a > 1\r\nx\r\n", "Invalid Publish Subject"],
  ["no subject", "PUB 1\r\nx\r\n", "Parser Error"],
  ["a size with a sign", "PUB a -1\r\n", "Parser Error"],
  ["a size that is no number", "PUB a 1e3\r\n", "Parser Error"],
  ["a fourth field", "PUB a b c 1\r\nx\r\n", "Parser Error"],
  ["a message that is longer than its size", "PUB a 1\r\nxy\r\n", "Parser Error"],
  ["a message above the limit", `PUB a ${payloadBytesMax + 1}\r\n`, "Maximum Payload Violation"],
  ["headers that are longer than their message", "HPUB a 20 10\r\n", "Maximum Headers Exceeded"],
  ["headers above the limit", `HPUB a ${controlLineBytesMax + 1} 9000\r\n`, "Maximum Headers Exceeded"],
  ["headers with a status", "HPUB a 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", "Parser Error"],
  ["headers without an end", "HPUB a 10 10\r\nNATS/1.0\r\n\r\n", "Parser Error"],
  ["a header without a colon", "HPUB a 15 15\r\nNATS/1.0\r\nx\r\n\r\n\r\n", "Parser Error"],
  ["a line above the limit", `SUB ${"p".repeat(controlLineBytesMax)}`, "Maximum Control Line Exceeded"],
])("the commands of a tunnel are refused for %s", (_, text, reason) => {
  expect(() => commandsIn(parserOf(Buffer.from(text, "latin1")))).toThrow(reason);
});

test("the commands of a tunnel that carry a message are refused as long as no machine is proven", () => {
  const parser = new ProtocolParser();
  parser.push(Buffer.from("PUB a 1\r\nx\r\n"));
  expect(() => parser.next()).toThrow("Maximum Payload Violation");
});
