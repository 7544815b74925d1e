import { pino, type Logger } from "pino";

const asJson: typeof pino.symbols.asJsonSym = pino.symbols.asJsonSym;
const bindingsText: typeof pino.symbols.chindingsSym = pino.symbols.chindingsSym;
const beginnings: typeof pino.symbols.lsCacheSym = pino.symbols.lsCacheSym;

type Render = (this: Internals, fields: object, message: unknown, level: number, time: string) => string;

/** What a logger of pino knows of its lines: how each begins by its level, and what all of them have in common. */
interface Internals {
  readonly [beginnings]: Readonly<Record<number, string>>;
  readonly [bindingsText]: string;
  [asJson]: Render;
}

/**
 * Has a logger write its lines in one go. Pino asks for the text of each name and each value by itself, which is most of
 * what a line costs, and every request has two. The lines are the same to the byte; those with an error in them, which is
 * not shown as it is, and all that JSON cannot say are still pino's own.
 */
export function renderLinesAtOnce(logger: Logger): Logger {
  const internals = logger as unknown as Internals;
  const byPino = internals[asJson];
  internals[asJson] = function (fields, message, level, time) {
    const told = isPlain(fields) && typeof message === "string" ? textOf(fields) : undefined;
    if (told === undefined) return byPino.call(this, fields, message, level, time);
    const comma = told.length > 2 ? "," : "";
    return `${this[beginnings][level] ?? ""}${time}${this[bindingsText]}${comma}${told.slice(1, -1)},"msg":${JSON.stringify(message)}}\n`;
  };
  return logger;
}

/** Whoever is an object of its own kind may say by itself how it is shown. */
function isPlain(fields: object): boolean {
  return Object.getPrototypeOf(fields) === Object.prototype && !("err" in fields) && !("toJSON" in fields);
}

function textOf(fields: object): string | undefined {
  try {
    return JSON.stringify(fields);
  } catch {
    return undefined;
  }
}
