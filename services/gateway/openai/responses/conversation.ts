import type { ChatMessage } from "#shared/protocol/chat-body.ts";
import { insistOnCallOrder } from "./call-order.ts";
import { textOf, type InputItem, type MessagePart } from "./input-items.ts";
import { isOfModel, ModelTurn, type ModelItem } from "./model-turn.ts";

type OtherItem = Exclude<InputItem, ModelItem>;
type UserMessage = Extract<ChatMessage, { role: "user" }>;
type UserPart = Exclude<UserMessage["content"], string>[number];

/** A message, and where in the request it stands or begins. */
export interface Placed {
  readonly message: ChatMessage;
  readonly param: string;
}

interface Given {
  readonly instructions?: string | null | undefined;
  readonly input: string | readonly InputItem[];
}

/** A conversation as machines are given it, the instructions before all of it. */
export function conversationOf({ instructions, input }: Given): ChatMessage[] {
  const placed = typeof input === "string" ? [placedText(input)] : placedItems(input);
  if (instructions) placed.unshift({ message: { role: "system", content: instructions }, param: "instructions" });
  insistOnCallOrder(placed);
  return placed.map(({ message }) => message);
}

function placedText(content: string): Placed {
  return { message: { role: "user", content }, param: "input" };
}

function placedItems(items: readonly InputItem[]): Placed[] {
  const said: { readonly by: ModelTurn | OtherItem; readonly param: string }[] = [];
  for (const [place, item] of items.entries()) {
    const param = `input[${place}]`;
    if (!isOfModel(item)) {
      said.push({ by: item, param });
      continue;
    }
    let turn = said.at(-1)?.by;
    if (!(turn instanceof ModelTurn)) said.push({ by: (turn = new ModelTurn()), param });
    turn.add(item);
  }
  return said.map(({ by, param }) => ({ message: by instanceof ModelTurn ? by.message() : told(by), param }));
}

function told(item: OtherItem): ChatMessage {
  if (item.type === "function_call_output") {
    const { call_id: id, output } = item;
    return { role: "tool", tool_call_id: id, content: typeof output === "string" ? output : joined(output) };
  }
  const { role, content } = item;
  if (role === "user") return { role, content: typeof content === "string" ? content : userContent(content) };
  return { role: "system", content: typeof content === "string" ? content : joined(content) };
}

function userContent(parts: readonly MessagePart[]): UserMessage["content"] {
  if (!parts.some(({ type }) => type === "input_image")) return joined(parts);
  return parts.map((part): UserPart => {
    if (part.type !== "input_image") return { type: "text", text: textOf(part) };
    const { image_url: url, detail } = part;
    if (!detail) return { type: "image_url", image_url: { url } };
    // No runtime looks closer than at what it calls high.
    return { type: "image_url", image_url: { url, detail: detail === "original" ? "high" : detail } };
  });
}

function joined(parts: readonly MessagePart[]): string {
  return parts.map(textOf).join("");
}
