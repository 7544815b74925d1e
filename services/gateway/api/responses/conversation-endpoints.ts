import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { readJsonObject } from "../../http/read-json.ts";
import { readShape } from "../../http/read-shape.ts";
import { callerOf } from "../../keys/authenticate.ts";
import { noSeat, type Limits } from "../../limits/limits.ts";
import { limitFault } from "../limit-responses.ts";
import { dropNulls, dropNullsAt } from "../request-fields.ts";
import { nameIgnored } from "../run-answer.ts";
import { type KeptResponses, storedResponseBytesMax } from "./kept-responses.ts";
import { conversationItemsRequest, conversationRequest, type InputItem } from "./response-schema.ts";
import { assertMetadata } from "./response-request.ts";
import { itemsPage, pageOf } from "./stored-endpoints.ts";
import {
  conversationNotFound,
  conversationPrefix,
  type EarlierTurns,
  isConversationId,
  readTurn,
  turnsOfConversation,
  writeTurn,
} from "./stored-turns.ts";

export const conversationsPath = "/conversations";
export const conversationPath = `${conversationsPath}/:id`;
export const conversationItemsPath = `${conversationPath}/items`;

interface Parts {
  readonly responses: KeptResponses;
  readonly clock: Pick<Clock, "wall">;
  readonly limited: { readonly limits: Pick<Limits, "admit"> };
}

type WithBody = FastifyRequest<{ Body: Buffer | undefined }>;
type OfConversation = FastifyRequest<{ Params: { id: string }; Body: Buffer | undefined }>;

/** Serves the conversations of the calling key. Their items are the turns of stored responses. */
export function conversations(server: FastifyInstance, { responses, clock, limited }: Parts): void {
  server.post(conversationsPath, async (request: WithBody, reply) => {
    const { key } = callerOf(request);
    if (!responses.mayStore(key)) throw storesNothing();
    const { items, metadata } = read(conversationRequest, request, reply);
    assertMetadata(metadata);
    await takeRequest(key, limited);
    const id = newToken(conversationPrefix);
    const created_at = Math.floor(clock.wall() / 1_000);
    const conversation = { id, object: "conversation", created_at, metadata: metadata ?? {} };
    await responses.put(key.id, id, JSON.stringify(conversation));
    if (items?.length) await addItems(key.id, { conversation: id, items }, responses);
    return conversation;
  });

  server.get(conversationPath, async (request: OfConversation) => {
    const found = await responses.find(callerOf(request).key.id, idOf(request));
    if (found === undefined) throw conversationNotFound();
    return JSON.parse(found) as object;
  });

  server.delete(conversationPath, async (request: OfConversation) => {
    const id = idOf(request);
    if (!(await responses.removeConversation(callerOf(request).key.id, id))) throw conversationNotFound();
    return { id, object: "conversation.deleted", deleted: true };
  });

  server.get(conversationItemsPath, async (request: OfConversation) => {
    const page = pageOf(request.query);
    const { items } = await turnsIn(callerOf(request).key.id, idOf(request), responses);
    return itemsPage(items, page);
  });

  server.post(conversationItemsPath, async (request: OfConversation, reply) => {
    const { key } = callerOf(request);
    const conversation = idOf(request);
    const { items } = read(conversationItemsRequest, request, reply);
    await takeRequest(key, limited);
    const added = await addItems(key.id, { conversation, items }, responses);
    return itemsPage(added, { limit: added.length, order: "asc" });
  });
}

function idOf({ params: { id } }: OfConversation): string {
  if (!isConversationId(id)) throw conversationNotFound();
  return id;
}

/** Reads a request that is stored, so that its size is bounded. Names what it ignores. */
function read<Value extends object>(schema: z.ZodType<Value>, { body }: WithBody, reply: FastifyReply): Value {
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
async function takeRequest({ id: keyId, limits }: KeyRecord, { limits: book }: Parts["limited"]): Promise<void> {
  if (limits?.requestsPerMinute === undefined) return;
  const demand = { keyId, limits, tokens: 0, seat: noSeat };
  const admission = await book.admit(demand);
  if (admission.outcome === "refused") throw limitFault(admission, demand);
}

async function turnsIn(key: KeyId, conversation: string, responses: KeptResponses): Promise<EarlierTurns> {
  const named = { previous: [], referred: [], conversations: [conversation] };
  const turns = turnsOfConversation(conversation, await responses.turnsNamed(key, named, () => undefined));
  if (turns === undefined) throw conversationNotFound();
  return turns;
}

/** Puts items at the end of a conversation, as a turn without an answer. Returns them with their ids. */
async function addItems(
  key: KeyId,
  { conversation, items }: { readonly conversation: string; readonly items: readonly InputItem[] },
  responses: KeptResponses,
) {
  const { before, bytes } = await turnsIn(key, conversation, responses);
  const id = newToken("resp_");
  const input = JSON.stringify(items);
  const text = writeTurn({ before, bytes, input }, JSON.stringify({ id, output: [] }));
  await responses.put(key, id, text);
  if (!(await responses.append(key, conversation, id))) throw conversationNotFound();
  return readTurn(text).input;
}

function storesNothing(): Fault {
  return new Fault("insufficient_permissions", {
    message:
      "Nothing is stored for this key. Send the whole conversation in 'input', or ask the operator to store its responses (keys issue --store-responses).",
  });
}
