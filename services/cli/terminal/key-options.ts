import { Argument, Option } from "commander";
import { commaList } from "#shared/process/config.ts";
import type { z } from "zod";
import { type GivenTerms, termRows } from "#shared/admin/key-terms.ts";
import { boundMachines, keyName, scopes, termSchema } from "#shared/records/key-record.ts";
import { keyId, type KeyId, parseKeyToken } from "#shared/keys/key-token.ts";
import { defaultTtlMs } from "#shared/records/issue-key.ts";
import { formatDuration } from "#shared/process/quantities.ts";
import { duration } from "#shared/records/shown-key.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { none, readBy, readByUnless } from "./command-line.ts";
import { countWithin, writtenBudget, writtenSpend } from "./quantity-text.ts";

export function keyArgument(): Argument {
  return new Argument("<id>", "the id of the key, as `trunkline keys list` shows it").argParser(givenKeyId);
}

/** Reads the id or the name of keys to look for, also from a whole pasted key. */
export function givenKeys(given: string): string {
  const pasted = parseKeyToken(given.trim());
  return pasted.outcome === "parsed" ? pasted.token.id : given.trim();
}

/**
 * Reads a key's id, also from a whole pasted key. The error never repeats the input, since it may be a part of a key.
 */
export function givenKeyId(given: string): KeyId {
  const text = given.trim();
  const pasted = parseKeyToken(text);
  if (pasted.outcome === "parsed") return pasted.token.id;
  const id = keyId.safeParse(text);
  if (id.success) return id.data;
  throw new StartFailure(
    exitCodes.usage,
    `The id ${id.error.issues[0]?.message}: \`trunkline keys list\` shows the ids of all.`,
  );
}

/** Ends the names of keys that `trunkline connect` issues. `trunkline keys list` hides those that it has revoked. */
export const connectMark = " (connect)";

export function nameOption(): Option {
  return new Option("--name <name>", "what to call the key in lists").argParser(readBy(keyName));
}

export function scopesOption(): Option {
  const read = readBy(commaList.pipe(scopes));
  return new Option("--scopes <patterns>", "the models it may call, with commas between").argParser(read);
}

/** Makes the option for the time that a key is valid. */
export function ttlOption(description: string): Option {
  const option = new Option("--ttl <duration>", description).argParser(readBy(duration));
  return option.default(defaultTtlMs, formatDuration(defaultTtlMs));
}

/** Returns the option of a term, without its dashes. */
function flagOf([name, { option = name }]: (typeof termRows)[number], begin: string): string {
  return begin + option.replaceAll("_", "-");
}

/** The options of terms have the names of the terms, unless something stands before these and their words. */
const ofKey = { begin: "", whose: "" };

/** Makes the options of terms: for a new key those that differ from the usual, for a change those that take back too. */
export function termOptions(isChange: boolean, rows = termRows, { begin, whose } = ofKey): readonly Option[] {
  return rows.flatMap((each) => {
    const [flag, [, row]] = [flagOf(each, begin), each];
    if (row.kind === "mark") {
      const [on, off] = row.usual ? [row.back, row.words] : [row.words, row.back];
      const both = [new Option(`--${flag}`, on), new Option(`--no-${flag}`, off)];
      return isChange ? both : both.slice(row.usual ? 1 : 0, row.usual ? 2 : 1);
    }
    const { kind, words, without = none, example, zero } = row;
    const [value, schema] = {
      machines: ["<names>", commaList.pipe(boundMachines)] as const,
      count: ["<count>", countWithin(row)] as const,
      budget: ["<tokens>", writtenBudget] as const,
      money: ["<amount>", writtenSpend] as const,
      choice: ["<one>", termSchema(row)] as const,
    }[kind];
    const form = kind === "machines" ? ", with commas between" : example ? `, such as ${example}` : "";
    const unset = without === "none" || without === "any" ? without : `none for ${without}`;
    const option = new Option(`--${flag} ${value}`, `${whose}${words}${form}, or ${unset}`);
    const read = option.argParser(readByUnless([without, none], schema as z.ZodType<unknown, string>));
    return zero === undefined ? read : [read, new Option(`--no-${flag}`, `${zero}, as with 0`)];
  });
}

/** Returns the given terms, null for `none`. Leaves out those that were not given. */
export function givenTerms(given: object, rows = termRows, begin = ""): GivenTerms {
  const options = new Map(Object.entries(given));
  const terms = rows.map((each) => {
    const value: unknown = options.get(new Option(`--${flagOf(each, begin)}`).attributeName());
    return [each[0], value === none ? null : value === false && each[1].kind === "count" ? 0 : value];
  });
  return Object.fromEntries(terms);
}

export const scopesHelp = `
A scope is a model id (llama3.2:3b), a name with all its variants (llama3.2), or a pattern in which * stands for
anything (qwen*). Quote patterns, or the shell takes the * for itself.`;

export const limitsHelp = `
Limits hold over all gateways together. Tokens are those of prompts and answers both; k and M stand for thousands and
millions.`;
