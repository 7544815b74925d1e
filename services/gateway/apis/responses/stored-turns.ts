import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import { tokenCharacters } from "#shared/protocol/identifiers.ts";
import type { InputItem } from "./response-schema.ts";

export const conversationPrefix = "conv_";

/** Turns of one conversation that goes on from stored responses. */
export const storedTurnsMax = 500;

/**
 * The stored turns that a request names, by the id of their response, as `writeTurn` returns them. The id of a
 * conversation has the first line alone.
 */
export type StoredTurns = ReadonlyMap<string, string>;

/** An item as it is stored: with the id by which clients refer to it. */
export type StoredItem = InputItem & { readonly id: string };

export interface StoredTurn {
  readonly input: readonly StoredItem[];
  readonly response: { readonly id: string; readonly output: readonly StoredItem[] };
}

/** The parts of a turn that are known before its answer. */
export interface BegunTurn {
  /** The ids of the turns before it, the oldest first. */
  readonly before: readonly string[];
  /** The request's own input items as JSON. */
  readonly input: string;
  /** The conversation that the turn belongs to, if any. */
  readonly conversation?: string | undefined;
}

/** Returns the text of a turn: a line with the ids of all turns up to this one, and a line with its own items. */
export function writeTurn(id: string, { before, input }: BegunTurn, response: string): string {
  return `${writeIds([...before, id])}{"input":${input},"response":${response}}`;
}

export function writeIds(ids: readonly string[]): string {
  return `${ids.join(" ")}\n`;
}

/** Returns the ids in the first line of a text, without reading any items. */
export function idsIn(text: string): string[] {
  return text.slice(0, text.indexOf("\n")).split(" ").filter(Boolean);
}

/** Returns the items of a turn. An input item without an id gets one that names its response, as output items do. */
export function readTurn(text: string): StoredTurn {
  const { input, response } = JSON.parse(text.slice(text.indexOf("\n"))) as StoredTurn;
  const name = response.id.slice(-tokenCharacters);
  const named = input.map((item, at) => ({ ...item, id: item.id || `${idPrefixes[kindOf(item)]}${name}i${at}` }));
  return { response, input: named };
}

const idPrefixes = {
  message: "msg_",
  reasoning: "rs_",
  function_call: "fc_",
  custom_tool_call: "ctc_",
  function_call_output: "fco_",
  custom_tool_call_output: "ctco_",
} as const;

/** Returns the kind of an item. Clients leave it out of messages. */
export function kindOf(item: InputItem): keyof typeof idPrefixes {
  return item.type ?? "message";
}

/** The turns before a request, and their items. */
export interface EarlierTurns extends Omit<BegunTurn, "input"> {
  readonly items: readonly StoredItem[];
}

/**
 * Returns the turns of a conversation, or those up to a response, the oldest first. A conversation goes on without its
 * deleted turns. A response does not: undefined if one is missing.
 */
export function earlierTurns(id: string, turns: StoredTurns): EarlierTurns | undefined {
  const text = turns.get(id);
  if (text === undefined) return undefined;
  const ids = idsIn(text);
  const before = ids.filter((each) => turns.has(each));
  if (before.length < ids.length && !isConversationId(id)) return undefined;
  let items: StoredItem[] = [];
  for (const each of ids) {
    const turn = turns.get(each);
    if (turn !== undefined) items.push(...itemsOf(readTurn(turn)));
    else items = items.filter((item) => removalOf(item.id) !== each);
  }
  return { before, items };
}

/**
 * Returns the text at a position of a conversation that removes an item from the turns before it. An older gateway takes it
 * for a turn that is gone, and shows the item.
 */
export function removalOf(item: string): string {
  return `-${encodeURIComponent(item)}`;
}

/** Returns the id of the response that names an item; undefined for an item that its client named. */
export function responseOfItem(item: string): string | undefined {
  const name = itemId.exec(item)?.[1];
  return name && `resp_${name}`;
}

export function itemsOf({ input, response }: StoredTurn): readonly StoredItem[] {
  return [...input, ...response.output];
}

/** Puts the items of stored turns in place of the references to them. A key without stored turns can refer to none. */
export function resolveReferences(input: unknown, turns: StoredTurns | undefined): void {
  if (!Array.isArray(input)) return;
  const read = new Map<string, readonly StoredItem[]>();
  for (const [index, item] of input.entries()) {
    if (Reflect.get(Object(item), "type") !== "item_reference") continue;
    if (turns === undefined) {
      throw new Fault("unsupported_value", {
        message: `'input[${index}]' refers to an item of an earlier response, and none is kept for this key; send the item itself, as clients do that are told 'store: false'.`,
        param: `input[${index}].type`,
      });
    }
    const id = String(Reflect.get(Object(item), "id"));
    const text = turns.get(responseOfItem(id) ?? "");
    const items = text === undefined ? [] : read.getOrInsertComputed(text, () => itemsOf(readTurn(text)));
    const found = items.find((each) => each.id === id);
    if (found === undefined) throw responseNotFound(`input[${index}].id`);
    input[index] = { ...found };
  }
}

const token = `[0-9A-Za-z]{${tokenCharacters}}`;
const responseId = new RegExp(`^resp_${token}$`);
const conversationId = new RegExp(`^${conversationPrefix}${token}$`);
const quotedId = new RegExp(`"((?:resp_|${conversationPrefix})${token})"`);
/** The id of an item, which holds the name of its response. */
const itemId = new RegExp(`\\b[a-z]{2,4}_(${token})i?\\d{1,5}\\b`);
const itemIds = new RegExp(itemId, "g");

/** The store has all texts of a key by their ids: responses, conversations and the positions of their turns. */
export const isResponseId = (id: string): boolean => responseId.test(id);
export const isConversationId = (id: string): boolean => conversationId.test(id);

/** Bytes around the name of a field in which its id stands. */
const nearBytes = 160;
/** Places of a request that are looked at for the ids of stored turns. A valid request names one that it goes on from. */
const latestMax = 4;
const referencesMax = 2_000;

/** The ids of the responses and conversations that a request goes on from, and of responses to whose items it refers. */
export interface NamedTurns {
  readonly latest: ReadonlySet<string>;
  readonly referred: ReadonlySet<string>;
}

/**
 * Finds the ids of stored turns in the bytes of a request, which are not parsed yet: parsing a large request would hold
 * the event loop. Clients write the name of a field and its value next to each other. An id too many costs a look into the
 * store and nothing else.
 */
export function namedTurns(bytes: Buffer): NamedTurns {
  const latest = ['"previous_response_id"', '"conversation"'].flatMap((field) =>
    [...textsNear(field, bytes).take(latestMax)].flatMap((text) => quotedId.exec(text)?.[1] ?? []),
  );
  const referred = textsNear('"item_reference"', bytes, nearBytes)
    .take(referencesMax)
    .flatMap((text) => text.matchAll(itemIds))
    .map(([, name]) => `resp_${name}`);
  return { latest: new Set(latest), referred: new Set(referred) };
}

function* textsNear(field: string, bytes: Buffer, bytesBefore = 0): Generator<string> {
  for (let at = bytes.indexOf(field); at !== -1; at = bytes.indexOf(field, at + field.length))
    yield bytes.toString("latin1", Math.max(0, at - bytesBefore), at + nearBytes);
}

/** Returns the one fault of a stored thing that is not there, whoever made it and wherever it is named. */
const notFound = (message: string) => (param?: string) => new Fault("response_not_found", { message, param });

export const conversationNotFound = notFound(
  "This key has no such conversation, or it is too old. Begin another one at /v1/conversations.",
);
export const responseNotFound = notFound(
  "This key has no such response, or it needs an earlier one that is gone: it was deleted or is too old. Send the whole conversation in 'input'.",
);

export const itemNotFound = notFound("This conversation has no such item, or the item was deleted or is too old.");

/** Returns the fault of a request that goes on from more than one may. */
export function tooLong(code: FaultCode, bound: string, param = "previous_response_id"): Fault {
  return new Fault(code, { message: `${bound}; send the conversation in 'input', or a summary of it.`, param });
}

export function tooManyTurns(param?: string): Fault {
  const bound = `A conversation may go on from at most ${storedTurnsMax} stored turns (storedTurnsMax)`;
  return tooLong("array_above_max_length", bound, param);
}
