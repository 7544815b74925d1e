import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { unknownUrl } from "../../http/answer-faults.ts";
import { readJsonObject, readShape } from "../../http/read-json.ts";
import { callerOf } from "../../keys/authenticate.ts";
import { oneRequest } from "../../limits/limits.ts";
import { countsRequests } from "../../requests/admit.ts";
import { limitFault } from "../../requests/limit-responses.ts";
import { dropNulls, dropNullsAt, invalidValue } from "../../requests/request-fields.ts";
import { nameIgnored } from "../../requests/ignored-fields.ts";
import type { ApiParts } from "../api.ts";
import { type ConversationReading, itemsIn } from "./conversation-items.ts";
import { type KeptResponses, siteFull, storedResponseBytesMax } from "./kept-responses.ts";
import { conversationItemsRequest, conversationRequest, type InputItem } from "./response-schema.ts";
import {
  conversationNotFound,
  conversationPrefix,
  isConversationId,
  isResponseId,
  itemNotFound,
  kindOf,
  readTurn,
  removalOf,
  responseNotFound,
  type StoredItem,
  tooManyTurns,
  writeTurn,
} from "./stored-turns.ts";

/** Items on one page, unless the client asks for fewer, and at most. */
export const itemsPageDefault = 20;
export const itemsPageMax = 100;
/** Bytes of the items on a page. It ends with the item that is above. */
const itemsPageBytesMax = 1024 * 1024;

interface StoredRoute {
  readonly Params: { readonly id: string; readonly item: string };
  readonly Body: Buffer | undefined;
}
type StoredRequest = FastifyRequest<StoredRoute>;

/** The memory for what a request reads: a page, and the turn behind it as it is stored. */
const readBytesMax = itemsPageBytesMax + 2 * storedResponseBytesMax;

/** Requests that read stored things take one of the requests that their key may send a minute, and room as a body does. */
function readingOptions({ limited }: ApiParts) {
  const preHandler = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    await takeRequest(request, limited);
    const { arriving } = request.state;
    arriving?.grow(readBytesMax);
    reply.raw.once("close", () => arriving?.leave());
  };
  return { preHandler };
}

/** Serves the responses and the conversations that are stored for the calling key. */
export function storedResponses(server: FastifyInstance, parts: ApiParts): void {
  serveResponses(server, parts);
  serveConversations(server, parts);
  serveConversationItems(server, parts);
}

function serveResponses(server: FastifyInstance, parts: ApiParts): void {
  const { responses } = parts;
  const reading = readingOptions(parts);
  const turnOf = async (request: StoredRequest) => {
    const text = await responses.find(callerOf(request).key.id, idOf(request, isResponseId, responseNotFound));
    if (text === undefined) throw responseNotFound();
    return readTurn(text);
  };
  server.get<StoredRoute>("/responses/:id", reading, async (request) => {
    const stream = Reflect.get(Object(request.query), "stream");
    if (stream !== undefined && stream !== "false") {
      throw new Fault("unsupported_parameter", {
        message: "'stream' can only be false here: a stored response comes whole.",
        param: "stream",
      });
    }
    return (await turnOf(request)).response;
  });
  server.delete<StoredRoute>("/responses/:id", reading, async (request) => {
    const id = idOf(request, isResponseId, responseNotFound);
    if (!(await responses.remove(callerOf(request).key.id, id))) throw responseNotFound();
    return { id, object: "response", deleted: true };
  });
  server.get<StoredRoute>("/responses/:id/input_items", reading, async (request) => {
    const page = pageOf(request.query);
    const { input } = await turnOf(request);
    return itemsPage(page.order === "asc" ? input : input.toReversed(), page, "response");
  });
  server.all("/responses/compact", async (request) => {
    throw unknownUrl(request);
  });
}

function serveConversations(server: FastifyInstance, parts: ApiParts): void {
  const { responses, clock, limited } = parts;
  const reading = readingOptions(parts);
  server.post<StoredRoute>("/conversations", async (request, reply) => {
    const { key } = callerOf(request);
    if (!responses.mayStore(key)) {
      throw new Fault("insufficient_permissions", {
        message:
          "Nothing is stored for this key. Send the whole conversation in 'input', or ask the operator to store its responses (keys issue --store-responses).",
      });
    }
    const { items, metadata } = readStored(conversationRequest, request, reply);
    await takeRequest(request, limited);
    const id = newToken(conversationPrefix);
    const created_at = Math.floor(clock.wall() / 1_000);
    const conversation = { id, object: "conversation", created_at, metadata: metadata ?? {} };
    if ((await responses.put(key.id, id, JSON.stringify(conversation))) === "full") throw siteFull();
    if (items?.length) await addItems(items, { key: key.id, conversation: id }, responses);
    return conversation;
  });
  server.get<StoredRoute>("/conversations/:id", reading, (request) => conversationOf(request, responses));
  server.delete<StoredRoute>("/conversations/:id", reading, async (request) => {
    const id = idOf(request, isConversationId, conversationNotFound);
    if (!(await responses.removeConversation(callerOf(request).key.id, id))) throw conversationNotFound();
    return { id, object: "conversation.deleted", deleted: true };
  });
}

/** The items of a conversation are those of the turns that it names. */
function serveConversationItems(server: FastifyInstance, parts: ApiParts): void {
  const { responses, limited } = parts;
  const reading = readingOptions(parts);
  const itemOf = async (request: StoredRequest): Promise<StoredItem> => {
    const { item: from } = request.params;
    for await (const item of itemsIn({ ...(await turnsOf(request, responses)), from }))
      if (item.id === from) return item;
    throw itemNotFound();
  };
  server.get<StoredRoute>("/conversations/:id/items", reading, async (request) => {
    const page = pageOf(request.query);
    const { order, after: from } = page;
    return itemsPage(itemsIn({ ...(await turnsOf(request, responses)), order, from }), page, "conversation");
  });
  server.get<StoredRoute>("/conversations/:id/items/:item", reading, async (request) =>
    shownItem(await itemOf(request)),
  );
  server.delete<StoredRoute>("/conversations/:id/items/:item", reading, async (request) => {
    const removal = removalOf((await itemOf(request)).id);
    const outcome = await responses.append(callerOf(request).key.id, request.params.id, removal);
    if (outcome !== "stored") throw outcome === "full" ? siteFull() : tooManyTurns("conversation");
    return conversationOf(request, responses);
  });
  server.post<StoredRoute>("/conversations/:id/items", async (request, reply) => {
    const { key } = callerOf(request);
    const conversation = idOf(request, isConversationId, conversationNotFound);
    const { items } = readStored(conversationItemsRequest, request, reply);
    await takeRequest(request, limited);
    return itemList(await addItems(items, { key: key.id, conversation }, responses), false);
  });
}

async function conversationOf(request: StoredRequest, responses: KeptResponses): Promise<object> {
  const text = await responses.find(callerOf(request).key.id, idOf(request, isConversationId, conversationNotFound));
  if (text === undefined) throw conversationNotFound();
  return JSON.parse(text) as object;
}

async function turnsOf(request: StoredRequest, responses: KeptResponses): Promise<ConversationReading> {
  const { key } = callerOf(request);
  const turns = await responses.turnsOf(key.id, idOf(request, isConversationId, conversationNotFound));
  if (turns === undefined) throw conversationNotFound();
  return { entries: [...turns.values()], textOf: (id) => responses.find(key.id, id) };
}

/** Puts items at the end of a conversation, as a turn without an answer. Returns them with their ids. */
async function addItems(
  items: readonly InputItem[],
  { key, conversation }: { readonly key: KeyId; readonly conversation: string },
  responses: KeptResponses,
): Promise<readonly StoredItem[]> {
  const id = newToken("resp_");
  const turn = { before: [], input: JSON.stringify(items) };
  const text = writeTurn(id, turn, JSON.stringify({ id, output: [] }));
  const outcome = await responses.putTurn(key, { id, text, conversation });
  if (outcome === "full") throw siteFull();
  if (outcome === "stored") return readTurn(text).input;
  throw (await responses.turnsOf(key, conversation)) ? tooManyTurns("conversation") : conversationNotFound();
}

function idOf({ params: { id } }: StoredRequest, isId: (id: string) => boolean, notFound: () => Fault): string {
  if (!isId(id)) throw notFound();
  return id;
}

/** Reads a request that is stored, so that its size is bounded. Names what it ignores. */
function readStored<Value extends object>(
  schema: z.ZodType<Value>,
  { body }: StoredRequest,
  reply: FastifyReply,
): Value {
  if (body !== undefined && body.byteLength > storedResponseBytesMax)
    throw new Fault("request_too_large", {
      message: `The request may have at most ${storedResponseBytesMax} bytes (storedResponseBytesMax).`,
    });
  const input = readJsonObject(body);
  dropNulls(input);
  dropNullsAt(input, ["items", "items.content", "items.output"]);
  const { value, ignored } = readShape(schema, input);
  nameIgnored(reply, ignored);
  return value;
}

/** Takes one of the requests that a key may send a minute, as a count of tokens does. */
async function takeRequest(request: FastifyRequest, { limits: book }: ApiParts["limited"]): Promise<void> {
  const books = callerOf(request).books.filter(countsRequests);
  if (books.length === 0) return;
  const admission = await book.admit({ books, ...oneRequest });
  request.state.limitStatus = admission.limitStatus;
  if (admission.outcome === "refused") throw limitFault(admission, oneRequest);
}

const pageQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(itemsPageMax).default(itemsPageDefault),
  order: z.enum(["asc", "desc"]).default("desc"),
  after: z.string().optional(),
});

type Page = z.output<typeof pageQuery>;

function pageOf(query: unknown): Page {
  const { data, error } = pageQuery.safeParse(query);
  if (data !== undefined) return data;
  const param = String(error.issues[0]?.path[0]);
  const message = `'limit' must be a whole number from 1 to ${itemsPageMax} (itemsPageMax), 'order' must be 'asc' or 'desc', and 'after' the id of an item.`;
  throw invalidValue(param, message);
}

/** Returns a page of items that come in its order. */
async function itemsPage(
  items: Iterable<StoredItem> | AsyncIterable<StoredItem>,
  { limit, after }: Page,
  whole: "conversation" | "response",
) {
  const page: StoredItem[] = [];
  let isBehind = after === undefined;
  let bytes = 0;
  for await (const item of items) {
    if (page.length === limit || bytes > itemsPageBytesMax) return itemList(page, true);
    if (isBehind) {
      page.push(item);
      bytes += JSON.stringify(item).length;
    }
    isBehind ||= item.id === after;
  }
  if (!isBehind) throw invalidValue("after", `'after' must be the id of an item of this ${whole}.`);
  return itemList(page, false);
}

function itemList(items: readonly StoredItem[], has_more: boolean) {
  const data = items.map(shownItem);
  return { object: "list", data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more };
}

/** Returns an item with all fields that this API shows. Clients may leave some of them out of their requests. */
function shownItem(item: StoredItem) {
  const status = item.status ?? "completed";
  if (!("role" in item)) return { ...item, status };
  return { ...item, type: kindOf(item), status, content: partsOf(item) };
}

function partsOf({ role, content }: Extract<InputItem, { role: string }>): object[] {
  if (typeof content !== "string") return content;
  return [
    role === "assistant"
      ? { type: "output_text", text: content, annotations: [], logprobs: [] }
      : { type: "input_text", text: content },
  ];
}
