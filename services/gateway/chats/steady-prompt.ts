import { contentText, type ChatBody, type ChatMessage, type ToolDefinition } from "#shared/protocol/job-bodies.ts";

type SystemMessage = Extract<ChatMessage, { role: "system" }>;
/** A message that the model did not write. */
type ToldMessage = Extract<ChatMessage, { role: "user" | "tool" }>;

export interface SteadyOptions {
  /**
   * True for the APIs of coding agents, which put system messages between others. Some templates refuse those, and some
   * move them to the front.
   */
  readonly foldsSystem: boolean;
  /** Names of tools that the conversation loaded, in its order. Their client puts each anywhere among the others. */
  readonly loadedTools?: readonly string[];
}

/**
 * Removes what clients change at the front of a prompt with every request. Each turn then begins with the whole prompt
 * of the turn before, which its runtime has cached. `ignored` has the names of removed parts, for `x-trunkline-ignored`.
 */
export function steadyPrompt(
  body: ChatBody,
  { foldsSystem, loadedTools = [] }: SteadyOptions,
): { readonly body: ChatBody; readonly ignored: readonly string[] } {
  const unbilled = withoutBilling(body.messages);
  const messages = foldsSystem ? foldSystemMessages(unbilled) : unbilled;
  const tools = body.tools && { tools: orderTools(body.tools, loadedTools) };
  return { body: { ...body, messages, ...tools }, ignored: unbilled === body.messages ? [] : [billingName] };
}

/** Puts loaded tools behind all others, so that a template that writes tools at the front writes the others as before. */
function orderTools(tools: ToolDefinition[], loaded: readonly string[]): ToolDefinition[] {
  const index = ({ function: { name } }: ToolDefinition): number => loaded.indexOf(name);
  return loaded.length === 0 ? tools : tools.toSorted((one, other) => index(one) - index(other));
}

const billingName = "x-anthropic-billing-header";
/** Bounds the pairs of a billing line. Claude Code sends five; a pattern without a bound overflows the stack on millions. */
const billingPairsMax = 32;
/** The billing line: its name, and pairs with a nonce among them. */
const billingLine = new RegExp(`^${billingName}:(?:[ \\t]*[\\w-]+=[^;\\n]*(?:;|$)){0,${billingPairsMax}}\\s*`);

/**
 * Removes Claude Code's billing line, which is another one in each request. It is the first text block of the system
 * prompt, or the beginning of its text where a proxy joined the blocks.
 */
function withoutBilling(messages: ChatMessage[]): ChatMessage[] {
  const [first, ...others] = messages;
  if (first?.role !== "system" || others.length === 0) return messages;
  const { content } = first;
  const [start, ...parts] = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  if (start === undefined || !billingLine.test(start.text)) return messages;
  const text = start.text.replace(billingLine, "");
  const rest = text === "" ? parts : [{ ...start, text }, ...parts];
  return rest.length === 0 ? others : [{ ...first, content: rest }, ...others];
}

/**
 * Folds each system message after the first other message into a neighbour, so that its position never depends on a
 * template. The user's message or the tool's result before it takes its text at the end. Otherwise the next message takes
 * the text at its beginning, if it is not the assistant's. So no message comes between a call and its result, and no
 * turn of the user after a result.
 */
function foldSystemMessages(messages: ChatMessage[]): ChatMessage[] {
  const begin = messages.findIndex(({ role }) => role !== "system");
  const front = messages.slice(0, begin === -1 ? messages.length : begin);
  const folded = joined(front);
  /** The message that takes the texts behind it, and texts for the next message. They are joined once: there may be thousands. */
  let told: ToldMessage | undefined;
  let behind: string[] = [];
  let held: string[] = [];
  const release = (): void => {
    if (told !== undefined) folded.push(withText(told, "end", behind));
    if (held.length > 0) folded.push({ role: "user", content: held.join(separator) });
    [told, behind, held] = [undefined, [], []];
  };
  for (const message of messages.slice(front.length)) {
    if (message.role === "assistant") {
      release();
      folded.push(message);
    } else if (message.role === "system") {
      if (told === undefined) held.push(reminder(message));
      else behind.push(reminder(message));
    } else {
      const started = withText(message, "start", held);
      held = [];
      release();
      told = started;
    }
  }
  release();
  return folded;
}

/** Joins system messages at the front: many templates take only one. */
function joined(front: ChatMessage[]): ChatMessage[] {
  const [first] = front;
  if (first === undefined || front.length === 1) return front;
  return [{ ...first, role: "system", content: front.map(({ content }) => contentText(content)).join(separator) }];
}

const separator = "\n\n";

/** Marks a folded text in the way of these clients, so that a model does not take it for the user's or a tool's words. */
function reminder({ content }: SystemMessage): string {
  const text = contentText(content);
  return text.startsWith(reminderStart) ? text : `${reminderStart}\n${text}\n</system-reminder>`;
}

const reminderStart = "<system-reminder>";

function withText<Message extends ToldMessage>(message: Message, at: "start" | "end", texts: string[]): Message {
  if (texts.length === 0) return message;
  const { content } = message;
  if (typeof content === "string") {
    return { ...message, content: (at === "start" ? [...texts, content] : [content, ...texts]).join(separator) };
  }
  // The texts of parts are joined as they are, so the separator belongs to the added one.
  const text = texts.join(separator);
  const part = { type: "text", text: at === "start" ? `${text}${separator}` : `${separator}${text}` } as const;
  return { ...message, content: at === "start" ? [part, ...content] : [...content, part] };
}
