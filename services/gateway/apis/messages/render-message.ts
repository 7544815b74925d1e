import type { AnswerEvent, FinishReason, Usage } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/answer-parts.ts";
import { assertLength, eventCharactersMin } from "../../chats/render-completions.ts";
import type { Rendering } from "../../requests/endpoint.ts";
import { type BlockEvent, type BlockWriter, ContentBlocks } from "./content-blocks.ts";
import { faultForMessages, messageFaultBody } from "./message-faults.ts";

const stopReasons: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
};

/** The end of an answer that goes on. Nothing here tells of a refusal, and none runs code in a container. */
const noEnding = { container: null, stop_details: null, stop_reason: null, stop_sequence: null };

/** Returns how an answer ended, in the words of this API. */
function ending({ reason, stop }: Finish): Readonly<Record<keyof typeof noEnding, string | null>> {
  if (stop !== undefined) return { ...noEnding, stop_reason: "stop_sequence", stop_sequence: stop };
  return { ...noEnding, stop_reason: stopReasons[reason] };
}

type Finish = Pick<Extract<AnswerEvent, { kind: "finish" }>, "reason" | "stop">;

/**
 * The signature of every block of thoughts. Clients leave out thoughts without one when they send an answer back. Here
 * it proves nothing, and any signature is accepted.
 */
const signature = "trunkline";

/** Returns usage in Anthropic's format. Tokens from the cache of a runtime are no `input_tokens` there. */
function messageUsage({ promptTokens, completionTokens, cachedTokens = 0, reasoningTokens }: Usage): object {
  return {
    input_tokens: Math.max(0, promptTokens - cachedTokens),
    cache_creation: null,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    output_tokens: completionTokens,
    output_tokens_details: reasoningTokens === undefined ? null : { thinking_tokens: reasoningTokens },
    inference_geo: null,
    server_tool_use: null,
    service_tier: null,
  };
}

const noUsage: Usage = { promptTokens: 0, completionTokens: 0 };
const nothing = new Uint8Array();

/** A block of an answer that is gathered. The arguments of a call stay the text that the model wrote. */
type Gathered =
  | { readonly kind: "text" | "reasoning"; text: string }
  | { readonly kind: "call"; readonly id: string; readonly name: string; text: string };

/** Characters that a block counts for besides its content: the memory and the JSON around it. */
const blockCharacters = 512;

/** The parts of both forms of a message. The end of an answer and its usage are written behind its content. */
abstract class MessageAnswer {
  protected readonly head: AnswerHead;
  protected finish: Finish = { reason: "stop" };
  protected usage = noUsage;

  constructor(head: AnswerHead) {
    this.head = head;
  }

  protected abstract take(event: BlockEvent): void;

  protected takeAll(events: readonly AnswerEvent[]): void {
    for (const event of events) {
      if (event.kind === "finish") this.finish = event;
      else if (event.kind === "usage") this.usage = event;
      else if (event.kind !== "embedding" && event.kind !== "scores" && event.kind !== "audio") this.take(event);
    }
  }
}

export class WholeMessage extends MessageAnswer implements AnswerRenderer {
  readonly #blocks: Gathered[] = [];
  readonly #calls = new Map<number, Gathered>();
  #characters = 0;

  push(events: readonly AnswerEvent[]): Uint8Array {
    this.takeAll(events);
    assertLength(this.#characters);
    return nothing;
  }

  end(): Uint8Array {
    const { id, model } = this.head;
    const first = JSON.stringify({ id, type: "message", role: "assistant", model }).slice(0, -1);
    const rest = JSON.stringify({ ...ending(this.finish), usage: messageUsage(this.usage) }).slice(1);
    return Buffer.from(`${first},"content":[${this.#blocks.map(writtenBlock).join(",")}],${rest}`);
  }

  protected take(event: BlockEvent): void {
    if (event.kind === "tool-call-start") {
      const { index, id = "", name } = event;
      this.#calls.set(index, this.#begin({ kind: "call", id, name, text: "" }));
      this.#characters += id.length + name.length;
    } else if (event.kind === "tool-call-delta") {
      const call = this.#calls.get(event.index);
      if (call) this.#extend(call, event.arguments);
    } else {
      const last = this.#blocks.at(-1);
      const isOpen = last?.kind === event.kind;
      this.#extend(isOpen ? last : this.#begin({ kind: event.kind, text: "" }), event.text);
    }
  }

  #begin(block: Gathered): Gathered {
    this.#blocks.push(block);
    this.#characters += blockCharacters;
    return block;
  }

  #extend(block: Gathered, text: string): void {
    block.text += text;
    this.#characters += Math.max(eventCharactersMin, text.length);
  }
}

const emptyText = { type: "text", text: "", citations: null };
/** The caller of every tool: the model itself. */
const caller = { type: "direct" };

function writtenBlock(block: Gathered): string {
  switch (block.kind) {
    case "text":
      return JSON.stringify({ ...emptyText, text: block.text });
    case "reasoning":
      return JSON.stringify({ type: "thinking", thinking: block.text, signature });
    case "call": {
      const { id, name, text } = block;
      return `${JSON.stringify({ type: "tool_use", id, name, caller }).slice(0, -1)},"input":${argumentsText(text)}}`;
    }
  }
}

/** Returns the arguments of a call as they were written. In this API they are an object, so no other text can be sent. */
export function argumentsText(text: string): string {
  if (text.trim() === "") return "{}";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return text;
  throw new Fault("upstream_error", {
    message: "The model called a tool with arguments that are no JSON object. Try again.",
    internal: "the arguments of a tool call are no JSON object",
  });
}

/** Renders a message as a stream of named server-sent events. `message_stop` comes after a success only. */
export class MessageStream extends MessageAnswer implements AnswerRenderer {
  readonly #blocks = new ContentBlocks(this.#writer());
  #written = "";
  #begun = false;
  /** The beginning of a delta of the open block. It is built once for each block, since deltas come for every token. */
  #openDelta = "";

  push(events: readonly AnswerEvent[]): Uint8Array {
    this.takeAll(events);
    return this.#taken();
  }

  end(): Uint8Array {
    this.#begin();
    this.#blocks.end();
    const delta = JSON.stringify(ending(this.finish));
    this.#emit("message_delta", `"delta":${delta},"usage":${JSON.stringify(messageUsage(this.usage))}`);
    this.#written += `event: message_stop\ndata: {"type":"message_stop"}\n\n`;
    return this.#taken();
  }

  protected take(event: BlockEvent): void {
    this.#begin();
    this.#blocks.take(event);
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const { id, model } = this.head;
    const begun = { id, type: "message", role: "assistant", model, content: [] };
    const message = { ...begun, ...noEnding, usage: messageUsage(noUsage) };
    this.#emit("message_start", `"message":${JSON.stringify(message)}`);
  }

  #writer(): BlockWriter {
    let index = -1;
    let isThinking = false;
    return {
      begin: (block) => {
        index += 1;
        isThinking = block === "reasoning";
        const [begun, type, field] = begunBlock(block);
        this.#openDelta = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":`;
        this.#emit("content_block_start", `"index":${index},"content_block":${JSON.stringify(begun)}`);
      },
      delta: (text) => {
        this.#written += `${this.#openDelta}${JSON.stringify(text)}}}\n\n`;
      },
      end: () => {
        if (isThinking) {
          const delta = JSON.stringify({ type: "signature_delta", signature });
          this.#emit("content_block_delta", `"index":${index},"delta":${delta}`);
        }
        this.#emit("content_block_stop", `"index":${index}`);
      },
    };
  }

  #emit(type: string, fields: string): void {
    this.#written += `event: ${type}\ndata: {"type":"${type}",${fields}}\n\n`;
  }

  #taken(): Uint8Array {
    if (this.#written === "") return nothing;
    const bytes = Buffer.from(this.#written);
    this.#written = "";
    return bytes;
  }
}

/** Returns a block at its beginning, and the type and the field of its deltas. */
function begunBlock(block: Parameters<BlockWriter["begin"]>[0]): readonly [begun: object, type: string, field: string] {
  if (block === "text") return [emptyText, "text_delta", "text"];
  if (block === "reasoning") return [{ type: "thinking", thinking: "", signature: "" }, "thinking_delta", "thinking"];
  const { id = "", name } = block;
  return [{ type: "tool_use", id, name, caller, input: {} }, "input_json_delta", "partial_json"];
}

/**
 * Returns the renderer of a message, the translation of its faults, and the last bytes of its stream. A ping carries
 * its reason in a comment before it.
 */
export function renderMessage({
  streamed,
  requestId,
}: {
  readonly streamed: boolean;
  readonly requestId: string;
}): Rendering {
  return {
    render: (head) => (streamed ? new MessageStream(head) : new WholeMessage(head)),
    ends: {
      whole: nothing,
      failed: (fault) => Buffer.from(`event: error\ndata: ${JSON.stringify(messageFaultBody(fault, requestId))}\n\n`),
      waiting: (reason) => Buffer.from(`: ${reason}\nevent: ping\ndata: {"type":"ping"}\n\n`),
    },
    adaptFault: faultForMessages,
  };
}
