import type { Model } from "#shared/model/model.ts";
import { Fault } from "#shared/fault/fault.ts";
import { z } from "zod";

/** Models on one page of the list, unless the client asks for fewer. */
export const modelsPageMax = 1_000;

/** A model as Anthropic's clients read it. */
export interface MessageModel {
  readonly type: "model";
  readonly id: string;
  readonly display_name: string;
  readonly created_at: string;
  readonly max_input_tokens: number;
}

export function messageModel({ id, created, context_window }: Model): MessageModel {
  const created_at = new Date(created * 1_000).toISOString();
  return { type: "model", id, display_name: id, created_at, max_input_tokens: context_window };
}

export interface MessageModelPage {
  readonly data: readonly MessageModel[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(modelsPageMax).optional(),
  after_id: z.string().optional(),
  before_id: z.string().optional(),
});

/** Returns a page of the models: those behind `after_id`, or those before `before_id`, `limit` of them at most. */
export function messageModelPage(models: readonly Model[], query: unknown): MessageModelPage {
  const { success, data: asked } = pageQuery.safeParse(query);
  if (!success) {
    const message = `'limit' must be a whole number from 1 to ${modelsPageMax} (modelsPageMax); 'after_id' and 'before_id' may be given once.`;
    throw new Fault("invalid_value", { message, param: "limit" });
  }
  const { limit = modelsPageMax, after_id: after, before_id: before } = asked;
  const from = after === undefined ? 0 : models.findIndex(({ id }) => id === after) + 1;
  const found = before === undefined ? -1 : models.findIndex(({ id }) => id === before);
  const to = found === -1 ? models.length : found;
  const page =
    before === undefined
      ? models.slice(from, Math.min(to, from + limit))
      : models.slice(Math.max(from, to - limit), to);
  const hasMore = before === undefined ? from + page.length < models.length : to - page.length > 0;
  const data = page.map(messageModel);
  return { data, has_more: hasMore, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}
