import { Fault, originOf } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import { learnCallSyntax, type CallSyntax, type TemplateMessage } from "./gguf-call-syntax.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { TemplateLibrary } from "./gguf-library.ts";

/** The marks around the thoughts that a model writes before its answer. */
export interface ThoughtMarks {
  readonly open: string;
  readonly close: string;
}

/** The options of a rendering beside the messages. */
interface Wish {
  readonly tools?: ChatBody["tools"];
  readonly effort?: ChatBody["reasoning_effort"];
  /** True if the model is to answer next. */
  readonly answering?: boolean;
}

/** The template of a model whose file has none, as in llama.cpp. */
const templateDefault =
  "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const knownThoughts: readonly ThoughtMarks[] = [
  { open: "<think>", close: "</think>" },
  { open: "<thinking>", close: "</thinking>" },
  { open: "<seed:think>", close: "</seed:think>" },
  { open: "[THINK]", close: "[/THINK]" },
];

/** The chat template of a model, and the abilities of the model that the template shows. */
export class GgufTemplate {
  readonly thoughts: ThoughtMarks | undefined;
  /** True if the model writes on channels, with its thoughts on a separate channel. */
  readonly onChannels: boolean;
  readonly calls: CallSyntax | undefined;
  readonly #template: { render(values: Readonly<Record<string, unknown>>): string };
  readonly #source: string;
  readonly #texts: { readonly bos_token: string; readonly eos_token: string };

  constructor(file: Pick<GgufFile, "template" | "beginText" | "endText">, { Template }: TemplateLibrary) {
    this.#source = file.template ?? templateDefault;
    this.#template = new Template(this.#source);
    this.#texts = { bos_token: file.beginText, eos_token: file.endText };
    this.thoughts = knownThoughts.find(({ close }) => this.#source.includes(close));
    this.onChannels = this.#source.includes("<|channel|>") && this.#source.includes("<|message|>");
    this.calls = this.#tellsTools()
      ? learnCallSyntax((messages) => this.#render(messages, { tools: [probe] }))
      : undefined;
  }

  get thinks(): boolean {
    return this.onChannels || this.thoughts !== undefined;
  }

  /** Renders the conversation as the model reads it, up to the beginning of the answer. */
  render(messages: readonly TemplateMessage[], wish: Wish): string {
    this.#refuseEffort(wish.effort);
    try {
      return this.#render(messages, { ...wish, answering: true });
    } catch (error) {
      try {
        return this.#render(withoutSystem(messages), { ...wish, answering: true });
      } catch {
        throw refused(error);
      }
    }
  }

  #render(messages: readonly TemplateMessage[], { tools, effort, answering = false }: Wish): string {
    return this.#template.render({
      ...this.#texts,
      messages,
      ...(tools !== undefined && { tools }),
      ...(effort !== undefined && { enable_thinking: effort !== "none", thinking: effort !== "none" }),
      ...(effort !== undefined && effort !== "none" && { reasoning_effort: effort }),
      add_generation_prompt: answering,
    });
  }

  /** Refuses an effort that the template has no switch for: the model then always thinks in the same way. */
  #refuseEffort(effort: ChatBody["reasoning_effort"]): void {
    if (effort === undefined || !this.thinks) return;
    const switches = /\b(enable_thinking|thinking)\b/.test(this.#source.replaceAll(/<\/?thinking>/g, ""));
    const grades = /\breasoning_effort\b/.test(this.#source);
    if (effort === "none" ? switches : switches || grades) return;
    throw new Fault("unsupported_value", {
      message: `The chat template of this model has no way to ask for 'reasoning_effort' '${effort}'.`,
      param: "reasoning_effort",
    });
  }

  #tellsTools(): boolean {
    const messages = [{ role: "user", content: "Q7Z" }];
    try {
      return this.#render(messages, { tools: [probe] }).includes(probe.function.name);
    } catch {
      return false;
    }
  }
}

const probe = {
  type: "function" as const,
  function: {
    name: "probe_name",
    description: "A probe.",
    parameters: { type: "object", properties: { probe_key: { type: "string" } }, required: ["probe_key"] },
  },
};

/** Moves the system message to the beginning of the user's text, for templates without a system role. */
function withoutSystem(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  const [first, second, ...rest] = messages;
  if (first?.["role"] !== "system") return messages;
  if (second?.["role"] !== "user") return [{ ...first, role: "user" }, ...(second ? [second, ...rest] : [])];
  return [{ ...second, content: `${String(first["content"])}\n\n${String(second["content"])}` }, ...rest];
}

function refused(error: unknown): Fault {
  return new Fault("invalid_value", {
    message: "The chat template of this model does not take a conversation of this form.",
    param: "messages",
    internal: originOf(error),
    cause: error,
  });
}
