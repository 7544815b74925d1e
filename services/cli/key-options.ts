import { Argument, Option } from "commander";
import type { NewTerms } from "#shared/keys/change-key.ts";
import { boundMachines, keyLimits, keyName, scopes, type TokenBudget } from "#shared/keys/key-record.ts";
import { keyId, type KeyId, parseKeyToken } from "#shared/keys/key-token.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { commaList, none, type OrNone, readBy, readByUnless } from "./command-line.ts";
import { countWithin, writtenBudget } from "./quantity-text.ts";

export function keyArgument(): Argument {
  return new Argument("<id>", "the id of the key, as `trunkline keys list` shows it").argParser(givenKeyId);
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
export interface GivenTerms {
  readonly machines?: OrNone<readonly string[]>;
  readonly elsewhere?: boolean;
  readonly rpm?: OrNone<number>;
  readonly tpm?: OrNone<number>;
  readonly concurrency?: OrNone<number>;
  readonly budget?: OrNone<TokenBudget>;
}

const { requestsPerMinute, tokensPerMinute, concurrency: atOnce } = keyLimits.shape;

export function nameOption(): Option {
  return new Option("--name <name>", "what to call the key in lists").argParser(readBy(keyName));
}

export function scopesOption(): Option {
  return new Option("--scopes <patterns>", "the models it may call, with commas between").argParser(
    readBy(commaList.pipe(scopes)),
  );
}

export function limitingOptions(): readonly Option[] {
  return [
    new Option("--machines <names>", "the machines that may serve it, with commas between, or any").argParser(
      readByUnless(["any", none], commaList.pipe(boundMachines)),
    ),
    new Option("--elsewhere", "let routes that say so lead it to machines that are elsewhere, such as a cloud"),
    new Option("--rpm <count>", "requests a minute at most, or none").argParser(
      readByUnless([none], countWithin(requestsPerMinute.unwrap())),
    ),
    new Option("--tpm <count>", "tokens a minute at most, such as 100k, or none").argParser(
      readByUnless([none], countWithin(tokensPerMinute.unwrap())),
    ),
    new Option("--concurrency <count>", "requests under way at once at most, or none").argParser(
      readByUnless([none], countWithin(atOnce.unwrap())),
    ),
    new Option("--budget <tokens>", "tokens a calendar day or month (UTC), such as 2M/month, or none").argParser(
      readByUnless([none], writtenBudget),
    ),
  ];
}

/** Returns the given machines and limits, null for `none`. Leaves out those that were not given. */
export function givenTerms(
  given: GivenTerms,
): Pick<NewTerms, "machines" | "elsewhere"> & Required<Pick<NewTerms, "limits">> {
  const { machines, elsewhere, rpm, tpm, concurrency, budget } = given;
  return {
    ...(machines === undefined ? {} : { machines: nullForNone(machines) }),
    ...(elsewhere === undefined ? {} : { elsewhere }),
    limits: {
      ...(rpm === undefined ? {} : { requestsPerMinute: nullForNone(rpm) }),
      ...(tpm === undefined ? {} : { tokensPerMinute: nullForNone(tpm) }),
      ...(concurrency === undefined ? {} : { concurrency: nullForNone(concurrency) }),
      ...(budget === undefined ? {} : { budget: nullForNone(budget) }),
    },
  };
}

function nullForNone<Value>(given: OrNone<Value>): Value | null {
  return given === none ? null : given;
}

export const scopesHelp = `
A scope is a model id (llama3.2:3b), a name with all its variants (llama3.2), or a pattern in which * stands for
anything (qwen*). Quote patterns, or the shell takes the * for itself.`;

export const limitsHelp = `
Limits hold over all gateways together. Tokens are those of prompts and answers both; k and M stand for thousands and
millions.`;
