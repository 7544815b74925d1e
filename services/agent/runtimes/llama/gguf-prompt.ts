import { Fault } from "#shared/fault/fault.ts";
import { contentText, type ChatBody, type ChatMessage } from "#shared/protocol/chat-body.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { Model, Token } from "./gguf-library.ts";
import { templateMessages } from "./gguf-messages.ts";
import type { GgufTemplate } from "./gguf-template.ts";

/** The prompt of a chat, before it becomes tokens. */
export interface Prompt {
  /** The rendered text with `seam` characters. No token spans a seam. */
  readonly text: string;
  /** True if the prompt ends inside the model's thoughts. */
  readonly thinking: boolean;
}

/** Separates the pieces of a prompt. Unicode reserves this character for internal use, so texts do not use it. */
const seam = "\uFDD0";

/**
 * Renders the conversation with the model's template. Cuts a client's text where it would otherwise become a control
 * token: only the template itself may end a turn or speak in another role.
 */
export function writePrompt(given: {
  template: GgufTemplate;
  file: Pick<GgufFile, "controlTexts">;
  body: ChatBody;
}): Prompt {
  const { template, file, body } = given;
  const { thoughts, calls } = template;
  const cut = cutterOf(file.controlTexts.filter((text) => text !== thoughts?.open && text !== thoughts?.close));
  const prefill = prefillOf(body.messages);
  const asked = prefill === undefined ? body.messages : body.messages.slice(0, -1);
  if (asked.length === 0) {
    throw new Fault("invalid_value", { message: "'messages' must hold more than a begun answer.", param: "messages" });
  }
  const messages = templateMessages(asked, calls?.argumentsAs ?? "object");
  const tools = body.tool_choice === "none" ? undefined : body.tools;
  const text = template.render(deeply(messages, cut), {
    effort: body.reasoning_effort,
    ...(tools !== undefined && { tools: deeply(tools, cut) }),
  });
  const thinking = thoughts !== undefined && text.trimEnd().endsWith(thoughts.open);
  if (prefill === undefined) return { text, thinking };
  const before = thoughtBefore({ template, thinking, thought: cut(prefill.thought) });
  return { text: text + before + cut(prefill.text), thinking: false };
}

export function promptTokens({ text }: Prompt, model: Model): Token[] {
  const tokens = text
    .split(seam)
    .flatMap((piece, at) => model.tokenize(piece, true, at === 0 ? undefined : "trimLeadingSpace"));
  return withBeginning(tokens, model);
}

/** Puts the model's beginning token (`bos`) before the tokens, if the model expects one. */
export function withBeginning(tokens: Token[], model: Model): Token[] {
  const { bos, shouldPrependBosToken } = model.tokens;
  return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens;
}

/** Returns the begun answer, if the conversation ends with text of the assistant. */
function prefillOf(messages: readonly ChatMessage[]): { readonly text: string; readonly thought: string } | undefined {
  const last = messages.at(-1);
  if (last?.role !== "assistant" || last.tool_calls !== undefined) return undefined;
  return { text: contentText(last.content), thought: last.reasoning_content ?? "" };
}

/** Returns the text between the prompt and a begun answer. It ends the thoughts. */
function thoughtBefore(given: { template: GgufTemplate; thinking: boolean; thought: string }): string {
  const { template, thinking, thought } = given;
  const { thoughts, onChannels } = template;
  if (onChannels) {
    const thinker = thought === "" ? "" : `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant`;
    return `${thinker}<|channel|>final<|message|>`;
  }
  if (thoughts === undefined || (thought === "" && !thinking)) return "";
  return `${thinking ? "" : thoughts.open}\n${thought}\n${thoughts.close}\n\n`;
}

function cutterOf(controlTexts: readonly string[]): (text: string) => string {
  const alternatives = controlTexts.toSorted((a, b) => b.length - a.length).map((text) => RegExp.escape(text));
  const controls = new RegExp(alternatives.join("|"), "g");
  return (text) => {
    const plain = text.replaceAll(seam, "\uFFFD");
    if (alternatives.length === 0) return plain;
    return plain.replace(controls, (found) => `${found.slice(0, 1)}${seam}${found.slice(1)}`);
  };
}

/** Returns a copy of `value` with every string value in it changed. */
function deeply<Value>(value: Value, change: (text: string) => string): Value {
  const walk = (each: unknown): unknown => {
    if (typeof each === "string") return change(each);
    if (Array.isArray(each)) return each.map(walk);
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([key, inner]) => [key, walk(inner)]));
  };
  return walk(value) as Value;
}
