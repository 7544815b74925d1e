import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Clock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { readJsonObject } from "../../http/read-json.ts";
import { readShape } from "../../http/read-shape.ts";
import { callerOf } from "../../keys/authenticate.ts";
import { dropNulls, invalidValue } from "../request-fields.ts";
import { type KeptResponses, storedResponseBytesMax } from "./kept-responses.ts";
import { conversationItemsRequest, conversationRequest, type InputItem } from "./response-schema.ts";
import { itemsPage, pageOf } from "./stored-endpoints.ts";
import {
  conversationNotFound,
  conversationPrefix,
  type EarlierTurns,
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
}

type WithBody = FastifyRequest<{ Body: Buffer | undefined }>;
type OfConversation = FastifyRequest<{ Params: { id: string }; Body: Buffer | undefined }>;

/** Serves the conversations of the calling key. Their items are the turns of stored responses. */
export function conversations(server: FastifyInstance, { responses, clock }: Parts): void {
  server.post(conversationsPath, async (request: WithBody) => {
    const { key } = callerOf(request);
    if (!responses.mayStore(key)) throw storesNothing();
    const { items, metadata } = readShape(conversationRequest, bodyOf(request)).value;
    const id = newToken(conversationPrefix);
    const conversation = { id, object: "conversation", created_at: seconds(clock), metadata: metadata ?? {} };
    await responses.put(key.id, id, JSON.stringify(conversation));
    if (items?.length) await addItems(key.id, { conversation: id, items }, responses);
    return conversation;
  });

  server.get(conversationPath, async (request: OfConversation) => {
    const found = await responses.find(callerOf(request).key.id, request.params.id);
    if (found === undefined || !request.params.id.startsWith(conversationPrefix)) throw conversationNotFound();
    return JSON.parse(found) as object;
  });

  server.delete(conversationPath, async (request: OfConversation) => {
    const { id } = request.params;
    const isThere = id.startsWith(conversationPrefix);
    if (!isThere || !(await responses.removeConversation(callerOf(request).key.id, id))) throw conversationNotFound();
    return { id, object: "conversation.deleted", deleted: true };
  });

  server.get(conversationItemsPath, async (request: OfConversation) => {
    const page = pageOf(request.query);
    const { items } = await turnsIn(callerOf(request).key.id, request.params.id, responses);
    return itemsPage(items, page);
  });

  server.post(conversationItemsPath, async (request: OfConversation) => {
    const { items } = readShape(conversationItemsRequest, bodyOf(request)).value;
    const conversation = request.params.id;
    const added = await addItems(callerOf(request).key.id, { conversation, items }, responses);
    return itemsPage(added, { limit: added.length, order: "asc" });
  });
}

function bodyOf({ body }: WithBody): Record<string, unknown> {
  const input = readJsonObject(body);
  dropNulls(input);
  return input;
}

function seconds(clock: Parts["clock"]): number {
  return Math.floor(clock.wall() / 1_000);
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
  if (text.length > storedResponseBytesMax)
    throw invalidValue("items", `'items' may come to ${storedResponseBytesMax} bytes (storedResponseBytesMax).`);
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
