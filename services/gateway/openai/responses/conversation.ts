import { Fault } from "#shared/fault/fault.ts";
import type { ChatMessage } from "#shared/protocol/chat-body.ts";
import { insistOnCallOrder, type Placed } from "./call-order.ts";
import { textOf, type CallOutputItem, type InputItem, type MessageItem, type MessagePart } from "./input-items.ts";
import { isOfModel, ModelTurn } from "./model-turn.ts";

/** Items that do not come from the model: messages of other roles, and outputs of functions. */
type OtherItem = MessageItem | CallOutputItem;
type UserMessage = Extract<ChatMessage, { role: "user" }>;
type UserPart = Exclude<UserMessage["content"], string>[number];
type TextPart = Extract<UserPart, { type: "text" }>;

interface Given {
  readonly instructions?: string | null | undefined;
  readonly input: string | readonly InputItem[];
}

/** Converts the input to the messages that machines get. The instructions come first. */
export function conversationOf({ instructions, input }: Given): ChatMessage[] {
  const placed = typeof input === "string" ? [placedText(input)] : placedItems(input);
  if (instructions) placed.unshift({ message: { role: "system", content: instructions }, param: "instructions" });
  if (placed.length === 0) throw new Fault("invalid_value", { message: "'input' says nothing.", param: "input" });
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
  return said.flatMap(({ by, param }) => {
    const message = by instanceof ModelTurn ? by.message() : told(by);
    return message === undefined ? [] : [{ message, param }];
  });
}

function told(item: OtherItem): ChatMessage {
  if ("output" in item) {
    const { call_id: id, output } = item;
    return { role: "tool", tool_call_id: id, content: typeof output === "string" ? output : textContent(output) };
  }
  const { role, content } = item;
  if (role === "user") return { role, content: typeof content === "string" ? content : userContent(content) };
  return { role: "system", content: typeof content === "string" ? content : textContent(content) };
}

function userContent(parts: readonly MessagePart[]): UserMessage["content"] {
  if (!parts.some(({ type }) => type === "input_image")) return textContent(parts);
  return parts.map((part): UserPart => {
    if (part.type !== "input_image") return { type: "text", text: textOf(part) };
    const { image_url: url, detail } = part;
    if (!detail) return { type: "image_url", image_url: { url } };
    // `high` is the highest detail that any runtime supports.
    return { type: "image_url", image_url: { url, detail: detail === "original" ? "high" : detail } };
  });
}

/** Returns the text of a single part as a string, the form that most clients send. */
function textContent(parts: readonly MessagePart[]): string | TextPart[] {
  const texts = parts.map((part): TextPart => ({ type: "text", text: textOf(part) }));
  return texts.length > 1 ? texts : (texts[0]?.text ?? "");
}
