import * as fc from "fast-check";
import { pino, type Logger } from "pino";
import { expect, test } from "vitest";
import { renderLinesAtOnce } from "#shared/process/log-line.ts";

const value = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.double(),
  fc.integer(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom(undefined, null, Symbol("s"), () => "a function", new Date(0), new Error("it broke"), [1, [2n]]),
  fc.object(),
);
const name = fc.oneof(fc.string(), fc.constantFrom("err", "msg", "level", "time", "error", "toJSON", "__proto__", "0"));
const fields = fc.oneof(fc.dictionary(name, value, { noNullPrototype: true }), fc.constant(new Error("it broke")));
const message = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("request", "100 %s", "%d of %o", undefined));

function linesOf(make: (logger: Logger) => Logger): { readonly logger: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const options = { base: { pid: 1, name: "gateway" }, timestamp: () => ',"time":1' };
  return { logger: make(pino(options, { write })), lines };
}

test("whatever is said, the line is the same to the byte, and so are those of children", () => {
  const own = linesOf(renderLinesAtOnce);
  const pinos = linesOf((logger) => logger);
  const children = [own, pinos].map(({ logger }) => logger.child({ part: 'a "part"' }));
  fc.assert(
    fc.property(fields, message, fc.constantFrom("info", "warn", "error"), (said, words, level) => {
      for (const { logger } of [own, pinos]) logger[level](said, words);
      for (const child of children) child[level](said, words);
      for (const { logger } of [own, pinos]) logger[level](words ?? "");
      expect(own.lines).toEqual(pinos.lines);
      expect(own.lines).toHaveLength(3);
      own.lines.length = pinos.lines.length = 0;
    }),
    { numRuns: 1_000 },
  );
});
