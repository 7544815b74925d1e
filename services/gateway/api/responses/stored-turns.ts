import { Fault } from "#shared/fault/fault.ts";
import { tokenCharacters } from "#shared/protocol/identifiers.ts";
import type { InputItem } from "./response-schema.ts";

export const conversationPrefix = "conv_";

/** Turns of one conversation that goes on from stored responses. */
export const storedTurnsMax = 500;

/** The texts of stored turns by the id of their response. A text is what `writeTurn` returns. */
export type StoredTurns = ReadonlyMap<string, string>;

/** The turns that came before a response, and the bytes of all of them. */
export interface TurnHead {
  readonly before: readonly string[];
  readonly bytes: number;
}

/** An item as it is stored: with the id by which clients refer to it. */
export type StoredItem = InputItem & { readonly id: string };

export interface StoredTurn {
  readonly input: readonly StoredItem[];
  readonly response: { readonly id: string; readonly output: readonly StoredItem[] };
}

/** The parts of a turn that are known before its answer. */
export interface BegunTurn extends TurnHead {
  /** The request's own input items as JSON. */
  readonly input: string;
  /** The conversation that the turn belongs to, if any. */
  readonly conversation?: string | undefined;
}

/** Returns the text of a turn: a line with its head, which is read alone, and a line with its items. */
export function writeTurn({ before, bytes, input }: BegunTurn, response: string): string {
  const items = `{"input":${input},"response":${response}}`;
  const head: TurnHead = { before, bytes: bytes + Buffer.byteLength(items) };
  return `${JSON.stringify(head)}\n${items}`;
}

export function headOf(text: string): TurnHead {
  return JSON.parse(text.slice(0, text.indexOf("\n")));
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
export interface EarlierTurns extends TurnHead {
  readonly items: readonly StoredItem[];
}

/** Returns the items of the turns up to a response, the oldest first, and those turns. Empty for a first turn. */
export function earlierTurns(id: string | null | undefined, turns: StoredTurns): EarlierTurns {
  if (id === undefined || id === null) return { items: [], before: [], bytes: 0 };
  const latest = turns.get(id);
  if (latest === undefined) throw responseNotFound("previous_response_id");
  const { before, bytes } = headOf(latest);
  const chain = [...before, id];
  const missing = (): Fault => responseNotFound("previous_response_id");
  return { items: chain.flatMap((each) => itemsOf(turns.get(each), missing)), before: chain, bytes };
}

/** Returns the same of all turns of a conversation. Undefined without it. */
export function turnsOfConversation(id: string, turns: StoredTurns): EarlierTurns | undefined {
  const before = turns.get(id)?.split(" ").filter(Boolean);
  if (before === undefined) return undefined;
  const texts = before.flatMap((each) => turns.get(each) ?? []);
  const bytes = texts.reduce((sum, { length }) => sum + length, 0);
  return { items: texts.flatMap((text) => itemsOf(text)), before, bytes };
}

function itemsOf(text: string | undefined, missing = responseNotFound): readonly StoredItem[] {
  if (text === undefined) throw missing();
  const { input, response } = readTurn(text);
  return [...input, ...response.output];
}

/** Puts the items of stored turns in place of the references to them. */
export function resolveReferences(input: unknown, turns: StoredTurns): void {
  if (!Array.isArray(input)) return;
  const read = new Map<string, StoredTurn>();
  for (const [place, item] of input.entries()) {
    if (Reflect.get(Object(item), "type") !== "item_reference") continue;
    const id = String(Reflect.get(Object(item), "id"));
    const responseId = responseOfItem(id) ?? "";
    const text = turns.get(responseId);
    const turn = text === undefined ? undefined : read.getOrInsertComputed(responseId, () => readTurn(text));
    const found = turn && [...turn.input, ...turn.response.output].find((each) => each.id === id);
    if (found === undefined) throw responseNotFound(`input[${place}].id`);
    input[place] = { ...found };
  }
}

/** Returns the id of the response that an item belongs to, which the item's own id holds. */
function responseOfItem(id: string): string | undefined {
  const [, name] = itemId.exec(id) ?? [];
  return name && `resp_${name}`;
}
const itemId = new RegExp(`^[a-z]{2,4}_([0-9A-Za-z]{${tokenCharacters}})i?\\d{1,5}$`);
const responseId = new RegExp(`^resp_[0-9A-Za-z]{${tokenCharacters}}$`);
const conversationId = new RegExp(`^${conversationPrefix}[0-9A-Za-z]{${tokenCharacters}}$`);

/** The store has all texts of a key by their ids: responses, conversations and the places of their turns. */
export const isResponseId = (id: string): boolean => responseId.test(id);
export const isConversationId = (id: string): boolean => conversationId.test(id);

const quotedConversationId = new RegExp(`"(${conversationPrefix}[0-9A-Za-z]{${tokenCharacters}})"`);
const quotedResponseId = new RegExp(`"(resp_[0-9A-Za-z]{${tokenCharacters}})"`);

/** Bytes around the name of a field in which its id stands. */
const nearBytes = 160;
/** Places of a request that are looked at for the ids of stored turns. A valid request names one that it goes on from. */
const previousMax = 4;
const referencesMax = 2_000;

/**
 * The stored turns that a request names: the response or conversation that it goes on from, and those of items that it
 * refers to.
 */
export interface NamedTurns {
  readonly previous: readonly string[];
  readonly conversations: readonly string[];
  readonly referred: readonly string[];
}

/**
 * Finds the ids of stored turns in the bytes of a request, which are not parsed yet: parsing a large request would hold
 * the event loop. Clients write the name of a field and its value next to each other. An id too many costs a look into the
 * store and nothing else.
 */
export function namedTurns(bytes: Buffer): NamedTurns {
  const behind = (field: string, quotedId: RegExp): string[] => {
    const places = [...placesOf(field, bytes, previousMax)];
    const ids = places.flatMap((at) => quotedId.exec(bytes.toString("latin1", at, at + nearBytes))?.[1] ?? []);
    return [...new Set(ids)];
  };
  const previous = behind('"previous_response_id"', quotedResponseId);
  const conversations = behind('"conversation"', quotedConversationId);
  const referred = new Set<string>();
  for (const at of placesOf('"item_reference"', bytes, referencesMax)) {
    const near = bytes.toString("latin1", Math.max(0, at - nearBytes), at + nearBytes);
    for (const [text] of near.matchAll(/[a-z]{2,4}_\w+/g)) {
      const id = responseOfItem(text);
      if (id !== undefined) referred.add(id);
    }
  }
  return { previous, conversations, referred: [...referred] };
}

function* placesOf(name: string, bytes: Buffer, placesMax: number): Generator<number> {
  let at = bytes.indexOf(name);
  for (let places = 0; at !== -1 && places < placesMax; places += 1) {
    yield at;
    at = bytes.indexOf(name, at + name.length);
  }
}

/** Returns the one fault of a conversation that is not there. */
export function conversationNotFound(param?: string): Fault {
  const message = "This key has no such conversation, or it is too old. Begin another one at /v1/conversations.";
  return new Fault("response_not_found", { message, param });
}

/** Returns the one fault of a response that is not there, whoever made it and wherever it is named. */
export function responseNotFound(param?: string): Fault {
  return new Fault("response_not_found", {
    message:
      "This key has no such response, or it needs an earlier one that is gone: it was deleted or is too old. Send the whole conversation in 'input'.",
    param,
  });
}
