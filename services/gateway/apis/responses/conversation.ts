import type { AssistantMessage, ChatMessage, TextPart, UserMessage } from "#shared/protocol/job-bodies.ts";
import {
  textOf,
  type CallOutputItem,
  type InputItem,
  type MessageItem,
  type ResponseRequest,
  type CallItem,
  type CustomCallItem,
  type ReasoningItem,
  innerName,
} from "./response-schema.ts";
import { FoundImages, innerImage, invalidValue, type RequestImages } from "../../requests/request-fields.ts";
import { assertToolOrder, type MessageAt, type ToolOrderErrors } from "../../chats/request-tools.ts";

/** Items that do not come from the model: messages of other roles, and outputs of functions. */
type OtherItem = MessageItem | CallOutputItem;

/** The items of a request, of which the first `earlier` are those of stored turns. */
export interface PlacedItems {
  readonly items: readonly InputItem[];
  readonly earlier: number;
}

/** Returns the path of an item in the request. Those of stored turns are named by the field that put them there. */
function paramOf(index: number, earlier: number): string {
  return index < earlier ? "previous_response_id" : `input[${index - earlier}]`;
}

/** Converts the items to the messages that machines get. The instructions come first. */
export function conversationOf(instructions: ResponseRequest["instructions"], items: PlacedItems): ChatMessage[] {
  const placed = placedItems(items);
  if (instructions) placed.unshift({ message: { role: "system", content: instructions }, param: "instructions" });
  if (placed.length === 0) throw invalidValue("input", "'input' must not be empty.");
  const messages = placed.map(({ message }) => message);
  assertToolOrder(messages, toolOrder, (index) => placed[index]?.param ?? "input");
  return messages;
}

function placedItems({ items, earlier }: PlacedItems): MessageAt[] {
  const turns: { readonly by: OtherItem | ModelItem[]; readonly param: string }[] = [];
  for (const [index, item] of items.entries()) {
    const last = turns.at(-1)?.by;
    if (isOfModel(item) && Array.isArray(last)) last.push(item);
    else turns.push({ by: isOfModel(item) ? [item] : item, param: paramOf(index, earlier) });
  }
  return turns.flatMap(({ by, param }) => {
    const message = Array.isArray(by) ? assistantMessage(by) : chatMessageOf(by);
    return message === undefined ? [] : [{ message, param }];
  });
}

function chatMessageOf(item: OtherItem): ChatMessage {
  if ("output" in item) return { role: "tool", tool_call_id: item.call_id, content: userContent(item.output) };
  const { role, content } = item;
  return role === "user" ? { role, content: userContent(content) } : { role: "system", content: textContent(content) };
}

function userContent(content: MessageItem["content"]): UserMessage["content"] {
  if (typeof content === "string" || !content.some(({ type }) => type === "input_image")) return textContent(content);
  return content.map((part) =>
    part.type === "input_image" ? innerImage(part.image_url, part.detail) : { type: "text", text: textOf(part) },
  );
}

/** Returns the text of a single part as a string, the form that most clients send. */
function textContent(content: MessageItem["content"]): string | TextPart[] {
  if (typeof content === "string") return content;
  const texts = content.map((part): TextPart => ({ type: "text", text: textOf(part) }));
  return texts.length > 1 ? texts : (texts[0]?.text ?? "");
}

type ToolCalls = NonNullable<AssistantMessage["tool_calls"]>;

/** An item that comes from the model. Several of them in a row are one turn. */
type ModelItem = ReasoningItem | CallItem | CustomCallItem | (MessageItem & { readonly role: "assistant" });

function isOfModel(item: InputItem): item is ModelItem {
  return "role" in item ? item.role === "assistant" : !("output" in item);
}

/**
 * Returns one turn of the model. Its reasoning, texts and calls are separate items in this API, and become one message
 * to a model. Returns undefined when the turn is empty, as with encrypted reasoning only.
 */
function assistantMessage(items: readonly ModelItem[]): AssistantMessage | undefined {
  const thoughts: string[] = [];
  const texts: string[] = [];
  const calls: ToolCalls = [];
  for (const item of items) {
    if ("role" in item) texts.push(typeof item.content === "string" ? item.content : item.content.map(textOf).join(""));
    else if (item.type === "reasoning") {
      // Some clients send the reasoning in full, some its summary, some neither.
      for (const { text } of item.content?.length ? item.content : (item.summary ?? [])) thoughts.push(text);
    } else {
      // Models call a custom tool with JSON.
      const given = "input" in item ? JSON.stringify({ input: item.input }) : item.arguments;
      calls.push({ id: item.call_id, type: "function", function: { name: innerName(item), arguments: given } });
    }
  }
  if (texts.length + thoughts.length + calls.length === 0) return undefined;
  return {
    role: "assistant",
    ...((texts.length > 0 || calls.length === 0) && { content: texts.join("\n\n") }),
    ...(thoughts.length > 0 && { reasoning_content: thoughts.join("\n\n") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

const toolOrder: ToolOrderErrors = {
  noCall: [
    "A 'function_call_output' must follow the 'function_call' with the same 'call_id', before anybody speaks on.",
    ".call_id",
  ],
  sameIds: ["Two calls in a row have the same 'call_id', so that nobody can tell which of them is answered.", ""],
  noResult: ["Every 'function_call' must be followed by its 'function_call_output'; without one are", ""],
};

/** Returns the images of a request. Every image must be in a message of a user or in the output of a function. */
export function shownImages({ items, earlier }: PlacedItems): RequestImages {
  const images = new FoundImages();
  for (const [index, item] of items.entries()) {
    const [field, parts] = "output" in item ? ["output", item.output] : ["content", "content" in item && item.content];
    if (!Array.isArray(parts)) continue;
    for (const [at, part] of parts.entries()) {
      if (part.type !== "input_image") continue;
      const param = `${paramOf(index, earlier)}.${field}[${at}]`;
      if ("role" in item && item.role !== "user") throw invalidValue(param, "Only a user can show an image.");
      images.add(part.image_url, param, `${param}.image_url`);
    }
  }
  return images.fields();
}
