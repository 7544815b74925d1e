import { Argument, Option } from "commander";
import { commaList } from "#shared/process/config.ts";
import type { NewTerms } from "#shared/records/change-key.ts";
import {
  boundMachines,
  keyLimits,
  keyName,
  loadsPerMinuteDefault,
  scopes,
  type TokenBudget,
} from "#shared/records/key-record.ts";
import { keyId, type KeyId, parseKeyToken } from "#shared/keys/key-token.ts";
import { defaultTtlMs } from "#shared/records/issue-key.ts";
import { duration, formatDuration } from "#shared/records/shown-key.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { none, type OrNone, readBy, readByUnless } from "./command-line.ts";
import { countWithin, writtenBudget } from "./quantity-text.ts";

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

/** The terms of a key as given on the command line. */
export interface TermOptions {
  readonly machines?: OrNone<readonly string[]>;
  readonly external?: boolean;
  readonly rpm?: OrNone<number>;
  readonly tpm?: OrNone<number>;
  readonly concurrency?: OrNone<number>;
  readonly budget?: OrNone<TokenBudget>;
  /** False for `--no-loads`. */
  readonly loads?: OrNone<number> | false;
  /** False for `--no-continue`. */
  readonly continue?: boolean;
  readonly storeResponses?: boolean;
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

export function limitingOptions(): readonly Option[] {
  const { requestsPerMinute, tokensPerMinute, concurrency } = keyLimits.shape;
  const machines = readByUnless(["any", none], commaList.pipe(boundMachines));
  const count = (limit: typeof concurrency) => readByUnless([none], countWithin(limit.unwrap()));
  const option = (flags: string, description: string, read: (text: string) => unknown): Option =>
    new Option(flags, description).argParser(read);
  return [
    option("--machines <names>", "the machines that may serve it, with commas between, or any", machines),
    new Option("--external", "let routes that say so lead it to external machines, such as a cloud"),
    option("--rpm <count>", "requests a minute at most, or none", count(requestsPerMinute)),
    option("--tpm <count>", "tokens a minute at most, such as 100k, or none", count(tokensPerMinute)),
    option("--concurrency <count>", "requests under way at once at most, or none", count(concurrency)),
    option(
      "--budget <tokens>",
      "tokens a calendar day or month (UTC), such as 2M/month, or none",
      readByUnless([none], writtenBudget),
    ),
    option(
      "--loads <count>",
      `models a minute that may be loaded for it in place of others, or none for the usual ${loadsPerMinuteDefault}`,
      readByUnless([none], countWithin(keyLimits.shape.loadsPerMinute.unwrap())),
    ),
    new Option("--no-loads", "never load a model in place of others for it"),
    new Option("--no-continue", "let no other machine go on with its answers when theirs is lost"),
    new Option("--store-responses", "store its responses, encrypted, so that clients go on from them"),
  ];
}

/** Returns the given machines and limits, null for `none`. Leaves out those that were not given. */
export function givenTerms(
  given: TermOptions,
): Pick<NewTerms, "machines" | "external" | "continues" | "storesResponses"> & Required<Pick<NewTerms, "limits">> {
  const { machines, external, continue: continues, rpm, tpm, concurrency, budget, loads } = given;
  const limits = {
    requestsPerMinute: nullForNone(rpm),
    tokensPerMinute: nullForNone(tpm),
    concurrency: nullForNone(concurrency),
    budget: nullForNone(budget),
    loadsPerMinute: loads === false ? 0 : nullForNone(loads),
  };
  return { machines: nullForNone(machines), external, continues, storesResponses: given.storeResponses, limits };
}

function nullForNone<Value>(given: OrNone<Value> | undefined): Value | null | undefined {
  return given === none ? null : given;
}

export const scopesHelp = `
A scope is a model id (llama3.2:3b), a name with all its variants (llama3.2), or a pattern in which * stands for
anything (qwen*). Quote patterns, or the shell takes the * for itself.`;

export const limitsHelp = `
Limits hold over all gateways together. Tokens are those of prompts and answers both; k and M stand for thousands and
millions.`;
