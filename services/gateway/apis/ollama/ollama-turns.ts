import type { ChatMessage, UserMessage } from "#shared/protocol/job-bodies.ts";
import { FoundImages, innerImage, invalidValue, type RequestImages } from "../../requests/request-fields.ts";
import { assertToolOrder, type ToolOrderErrors } from "../../chats/request-tools.ts";
import type { OllamaMessage } from "./ollama-schema.ts";

type Call = NonNullable<OllamaMessage["tool_calls"]>[number] & { readonly id: string };

/** Converts the messages of a request. Images come in base64 without their type, and results may come without an id. */
export function ollamaTurns(given: readonly OllamaMessage[]): {
  readonly messages: ChatMessage[];
  readonly images: RequestImages;
} {
  const images = new FoundImages();
  /** The calls of the latest assistant message that have no result yet. */
  let open: Call[] = [];
  const messages = given.map((message, index): ChatMessage => {
    const { role, thinking } = message;
    const path = `messages[${index}]`;
    const content = contentOf(message.content ?? "", message.images, { path, images });
    if (role === "tool") return { role, tool_call_id: takeCall(open, message), content };
    if (role === "user") return { role, content };
    if (typeof content !== "string")
      throw invalidValue(
        `${path}.images`,
        `'${path}.images' must be empty: a message of role '${role}' has no images.`,
      );
    if (role === "system") return { role, content };
    // The id of a call without one depends on its position only, so that the next turn begins with the same bytes.
    open = (message.tool_calls ?? []).map((call, at) => ({ ...call, id: call.id ?? `call_${index}_${at}` }));
    return {
      role,
      content,
      ...(thinking ? { reasoning_content: thinking } : {}),
      ...(open.length > 0 ? { tool_calls: open.map(innerCall) } : {}),
    };
  });
  assertToolOrder(messages, toolOrder, (index) => `messages[${index}]`);
  return { messages, images: images.fields() };
}

function innerCall({ id, function: { name, arguments: given } }: Call) {
  return { id, type: "function" as const, function: { name, arguments: JSON.stringify(given ?? {}) } };
}

/** Takes the call that a result belongs to: by its id, by the name of its tool, or the next one. Returns the id. */
function takeCall(open: Call[], { tool_call_id: id, tool_name: tool, name }: OllamaMessage): string {
  const named = open.findIndex((call) => call.function.name === (tool ?? name));
  const found = id ? open.findIndex((call) => call.id === id) : Math.max(named, 0);
  const [taken] = found === -1 ? [] : open.splice(found, 1);
  return taken?.id ?? (id || "none");
}

const toolOrder: ToolOrderErrors = {
  noCall: [
    "A message with the role 'tool' must follow the assistant's message whose 'tool_calls' it answers.",
    ".role",
  ],
  sameIds: ["Two tool calls of one message have the same 'id'. Give each call its own id.", ".tool_calls"],
  noResult: ["Each tool call needs a message with the role 'tool' right after it. These calls have none:", ".role"],
};

/** The first characters of images in base64, by their types. */
const types = Object.entries({ png: "iVBORw0KGgo", jpeg: "/9j/", gif: "R0lGOD", webp: "UklGR", bmp: "Qk" });

/** Returns a text with its images as parts, or the text alone. A data URL is taken as it is. */
export function contentOf(
  text: string,
  given: readonly string[] | null | undefined,
  { path, images }: { readonly path: string; readonly images: FoundImages },
): UserMessage["content"] {
  if (!given?.length) return text;
  const parts = given.map((image, index) => {
    const param = `${path === "" ? "" : `${path}.`}images[${index}]`;
    const url = image.startsWith("data:") ? image : dataUrl(image, param);
    images.add(url, param, param);
    return innerImage(url);
  });
  return text === "" ? parts : [{ type: "text", text }, ...parts];
}

function dataUrl(image: string, param: string): string {
  const [type] = types.find(([, begins]) => image.startsWith(begins)) ?? [];
  if (type !== undefined) return `data:image/${type};base64,${image}`;
  throw invalidValue(param, `'${param}' must be a PNG, JPEG, GIF, WebP or BMP image in base64, without a prefix.`);
}
