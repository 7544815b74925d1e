import type { Model } from "#shared/protocol/model.ts";
import type { Places } from "../site/places.ts";

/** The facts of a site for a client's configuration. */
export interface SiteFacts {
  /** The URL of the site without a path, such as `https://models.example.org`. */
  readonly origin: string;
  /** The text of the API key, or a placeholder where the configuration is only shown. */
  readonly key: string;
  /** The model that the client uses first. */
  readonly model: Model;
  /** All models that the client may offer to its user. */
  readonly models: readonly Model[];
  readonly places: Places;
}

export interface Setting {
  /** The fields that lead to the value, or to the list that holds it. */
  readonly path: readonly string[];
  /** For a value in a list: the fields that tell it from the others. A list without it gets it at its end. */
  readonly element?: Readonly<Record<string, string>>;
  readonly value: unknown;
  /** True if a value of the user's own stays; any other difference counts as overwriting. */
  readonly givesWay?: true;
}

/** One file of a client's configuration. */
export type FileChange =
  /** Sets values in a file that also holds settings of its owner. */
  | {
      readonly kind: "settings";
      readonly file: string;
      readonly settings: readonly Setting[];
      /** The content that a missing file begins with. */
      readonly beginning?: object;
    }
  /** Writes a whole file that nobody else writes. */
  | { readonly kind: "whole"; readonly file: string; readonly text: string };

/** A program that can use a site. Its functions are pure. */
export interface Client {
  /** The name on the command line. */
  readonly name: string;
  readonly title: string;
  /** True if the client is of no use with a model that calls no tools. */
  readonly needsTools?: true;
  readonly files: (facts: SiteFacts) => readonly FileChange[];
  /** Returns what the user does next, one sentence or command a line. */
  readonly next: (facts: SiteFacts) => readonly string[];
}

/**
 * Ids of models that are written into configurations and shown in commands. Others come from hostile sites, mostly:
 * OpenCode reads files for `{file:…}` and Qwen Code variables for `$…`, and a quote or a line break begins a command.
 */
export const plainId = /^[\p{L}\p{M}\p{N} ._:/@+~,()=-]+$/u;

/** The name of the site in a client's list of providers. */
export const site = { name: "Trunkline", id: "trunkline" } as const;

/** Maximum tokens of one answer. Clients that know no model's own limit ask for as many. */
const outputTokensMax = 32_000;
/** The share of a window that is kept free for an answer. */
const outputShare = 0.2;

/** Returns the tokens that a client leaves free in the window for an answer. */
export function outputTokens({ context_window: window }: Model): number {
  return Math.min(outputTokensMax, Math.floor(window * outputShare));
}

/** Returns the tokens from which a client shortens its conversation. */
export function compactionTokens(model: Model): number {
  return model.context_window - outputTokens(model);
}

export function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
