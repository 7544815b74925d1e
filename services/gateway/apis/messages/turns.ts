import type { AssistantMessage, ChatMessage, TextPart, UserPart } from "#shared/protocol/job-bodies.ts";
import { FoundImages, invalidValue } from "../../requests/request-fields.ts";
import { assertToolOrder, type MessageAt, type ToolOrderErrors } from "../../chats/request-tools.ts";
import type {
  AssistantBlock,
  DocumentBlock,
  ImageBlock,
  MessageRequest,
  OuterMessage,
  ToolResultBlock,
  UserBlock,
} from "./message-schema.ts";

/**
 * Converts the system prompt and the messages of a request. A block of results becomes one message for each tool.
 * Neighbouring messages of one role become one message: this API counts them as one turn, and many chat templates
 * refuse two.
 */
export function turnsOf({ system, messages }: Pick<MessageRequest, "system" | "messages">) {
  const reader = new TurnReader();
  if (system?.length) {
    reader.add({ role: "system", content: partsOfText(system) }, "system");
  }
  for (const [index, message] of messages.entries()) reader.read(message, `messages[${index}]`);
  const { images, ignored, loadedTools } = reader;
  const placed = reader.placed.map(({ message, param }) => ({ message: withPlainText(message), param }));
  if (placed.length === 0) {
    throw invalidValue("messages", "'messages' must hold a text, an image or a tool's result.");
  }
  // Machines get the text of a system message within a neighbouring message.
  const spoken = placed.filter(({ message }) => message.role !== "system");
  assertToolOrder(
    spoken.map(({ message }) => message),
    toolOrder,
    (index) => spoken[index]?.param ?? "messages",
  );
  return { messages: placed.map(({ message }) => message), images: images.fields(), ignored, loadedTools };
}

class TurnReader {
  readonly placed: MessageAt[] = [];
  readonly images = new FoundImages();
  /** Paths of the blocks that mean nothing to a model here. */
  readonly ignored: string[] = [];
  /** Names of the tools that the client loaded after a search, in their order. */
  readonly loadedTools: string[] = [];

  add(message: ChatMessage, param: string): void {
    this.placed.push({ message, param });
  }

  read({ role, content }: OuterMessage, param: string): void {
    switch (role) {
      case "system":
        if (content.length > 0) this.add({ role, content: partsOfText(content) }, param);
        return;
      case "user":
        if (typeof content === "string") this.#addUser([{ type: "text", text: content }], param);
        else this.#readUser(content, param);
        return;
      case "assistant":
        if (typeof content === "string") this.#addAssistant([{ type: "text", text: content }], param);
        else this.#addAssistant(content, param);
    }
  }

  /** Adds the results first: a model expects them right behind its calls. */
  #readUser(blocks: readonly UserBlock[], param: string): void {
    const parts: UserPart[] = [];
    for (const [at, block] of blocks.entries()) {
      const path = `${param}.content[${at}]`;
      if (block.type === "tool_result") this.#addResult(block, path);
      else parts.push(...this.#partsOf(block, path));
    }
    if (parts.length > 0) this.#addUser(parts, param);
  }

  #addUser(parts: UserPart[], param: string): void {
    const last = this.placed.at(-1)?.message;
    if (last?.role === "user" && Array.isArray(last.content)) last.content.push(...parts);
    else this.add({ role: "user", content: parts }, param);
  }

  #addResult({ tool_use_id, content, is_error: isError }: ToolResultBlock, path: string): void {
    const parts: UserPart[] = isError === true ? [{ type: "text", text: "Error: " }] : [];
    if (typeof content === "string") parts.push({ type: "text", text: content });
    else
      for (const [at, block] of (content ?? []).entries()) {
        if (block.type === "tool_reference") {
          this.loadedTools.push(block.tool_name);
          parts.push({ type: "text", text: `${block.tool_name}\n` });
        } else parts.push(...this.#partsOf(block, `${path}.content[${at}]`));
      }
    this.add({ role: "tool", tool_call_id: tool_use_id, content: resultContent(parts) }, path);
  }

  #partsOf(block: Exclude<UserBlock, ToolResultBlock>, path: string): UserPart[] {
    switch (block.type) {
      case "text":
        return [{ type: "text", text: block.text }];
      case "image":
        return [this.#image(block, path)];
      case "document":
        return this.#document(block, path);
      case "search_result": {
        const { title, source, content } = block;
        return [{ type: "text", text: [title, source, ...content.map(({ text }) => text)].join("\n") }];
      }
    }
  }

  #image({ source }: ImageBlock, path: string): UserPart {
    const url = source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;
    this.images.add(url, path, `${path}.source.url`);
    return { type: "image_url", image_url: { url } };
  }

  #document({ source, title, context }: DocumentBlock, path: string): UserPart[] {
    const head = [title, context].filter(Boolean).join("\n");
    const before: UserPart[] = head === "" ? [] : [{ type: "text", text: `${head}\n` }];
    if (source.type === "text") return [...before, { type: "text", text: source.data }];
    const { content } = source;
    if (typeof content === "string") return [...before, { type: "text", text: content }];
    return [
      ...before,
      ...content.map((block, at) =>
        block.type === "image" ? this.#image(block, `${path}.source.content[${at}]`) : block,
      ),
    ];
  }

  #addAssistant(blocks: readonly AssistantBlock[], param: string): void {
    const last = this.placed.at(-1)?.message;
    const isNew = last?.role !== "assistant";
    const message: AssistantMessage = isNew ? { role: "assistant" } : last;
    const texts: TextPart[] = Array.isArray(message.content) ? message.content : [];
    for (const [at, block] of blocks.entries()) {
      switch (block.type) {
        case "text":
          texts.push({ type: "text", text: block.text });
          break;
        case "thinking": {
          const before = message.reasoning_content;
          message.reasoning_content =
            before && block.thinking ? `${before}\n\n${block.thinking}` : before || block.thinking;
          break;
        }
        case "tool_use":
          (message.tool_calls ??= []).push({
            id: block.id,
            type: "function",
            function: { name: block.name, arguments: JSON.stringify(block.input) },
          });
          break;
        default:
          this.ignored.push(`${param}.content[${at}]`);
      }
    }
    if (texts.length > 0) message.content = texts;
    const isEmpty = message.content === undefined && !message.reasoning_content && message.tool_calls === undefined;
    if (isNew && !isEmpty) this.add(message, param);
  }
}

function partsOfText(content: string | readonly TextPart[]): TextPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : [...content];
}

/** Returns the message with the text of a single part as a string, the form that most templates expect. */
function withPlainText(message: ChatMessage): ChatMessage {
  const [only, another] = Array.isArray(message.content) ? message.content : [];
  return only?.type === "text" && another === undefined ? { ...message, content: only.text } : message;
}

/** Returns the content of one tool's message: its texts joined, or parts where it shows images. */
function resultContent(parts: UserPart[]): string | UserPart[] {
  if (parts.some(({ type }) => type === "image_url")) return parts;
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

const toolOrder: ToolOrderErrors = {
  noCall: [
    "A 'tool_result' must follow the message with the 'tool_use' of the same id, and come before anything else.",
    ".tool_use_id",
  ],
  sameIds: ["Two blocks 'tool_use' of one turn have the same 'id'. Give each call its own id.", ""],
  noResult: ["Each 'tool_use' needs a 'tool_result' in the next message. These calls have none:", ""],
};
