import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { callerOf } from "../../keys/authenticate.ts";
import { invalidValue } from "../request-fields.ts";
import type { KeptResponses } from "./kept-responses.ts";
import type { InputItem } from "./response-schema.ts";
import { isResponseId, kindOf, readTurn, responseNotFound, type StoredItem, type StoredTurn } from "./stored-turns.ts";

/** Input items on one page, unless the client asks for fewer, and at most. */
export const itemsPageDefault = 20;
export const itemsPageMax = 100;

export const storedPath = "/responses/:id";
export const storedItemsPath = "/responses/:id/input_items";

interface Parts {
  readonly responses: KeptResponses;
}

type OfResponse = FastifyRequest<{ Params: { id: string } }>;

/** Serves the responses that are stored for the calling key. */
export function storedResponses(server: FastifyInstance, { responses }: Parts): void {
  server.get(storedPath, async (request: OfResponse) => {
    const stream = Reflect.get(Object(request.query), "stream");
    if (stream !== undefined && stream !== "false") {
      throw new Fault("unsupported_parameter", {
        message: "'stream' can only be false here: a stored response comes whole.",
        param: "stream",
      });
    }
    return (await storedTurn(request, responses)).response;
  });
  server.delete(storedPath, async (request: OfResponse) => {
    const { id } = request.params;
    if (!isResponseId(id) || !(await responses.remove(callerOf(request).key.id, id))) throw responseNotFound();
    return { id, object: "response", deleted: true };
  });
  server.get(storedItemsPath, async (request: OfResponse) => {
    const page = pageOf(request.query);
    return itemsPage((await storedTurn(request, responses)).input, page);
  });
}

async function storedTurn(request: OfResponse, responses: KeptResponses): Promise<StoredTurn> {
  const { id } = request.params;
  const text = isResponseId(id) ? await responses.find(callerOf(request).key.id, id) : undefined;
  if (text === undefined) throw responseNotFound();
  return readTurn(text);
}

const pageQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(itemsPageMax).default(itemsPageDefault),
  order: z.enum(["asc", "desc"]).default("desc"),
  after: z.string().optional(),
});
type Page = z.output<typeof pageQuery>;

export function pageOf(query: unknown): Page {
  const { data, error } = pageQuery.safeParse(query);
  if (data !== undefined) return data;
  const param = String(error.issues[0]?.path[0]);
  const message = `'limit' must be a whole number from 1 to ${itemsPageMax} (itemsPageMax), 'order' must be 'asc' or 'desc', and 'after' the id of an item.`;
  throw invalidValue(param, message);
}

export function itemsPage(input: readonly StoredItem[], { limit, order, after }: Page) {
  const items = order === "asc" ? input : input.toReversed();
  const from = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) {
    throw invalidValue("after", "'after' must be the id of an input item of this response.");
  }
  const data = items.slice(from, from + limit).map(shownItem);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + data.length < items.length,
  };
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
