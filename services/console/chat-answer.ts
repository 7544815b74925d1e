/** An answer of a model as it grows. Pure. */

export interface ToolCall {
  readonly name: string;
  readonly arguments: string;
}

/** An answer as far as it has come. */
export interface Answer {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly ToolCall[];
  /** The reason that the model gave for its end. Undefined while it writes. */
  readonly finish?: string | undefined;
}

export const noAnswer: Answer = { text: "", thinking: "", calls: [] };

export interface Chunk {
  readonly error?: { readonly message: string; readonly code: string | null; readonly param: string | null };
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string | null;
      readonly reasoning_content?: string | null;
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly function?: { readonly name?: string; readonly arguments?: string };
      }[];
    };
    readonly finish_reason?: string | null;
  }[];
}

/** Returns the answer with a chunk added. */
export function grow(answer: Answer, { choices: [choice] = [] }: Chunk): Answer {
  if (choice === undefined) return answer;
  const { content, reasoning_content: thinking, tool_calls: pieces = [] } = choice.delta ?? {};
  const calls = pieces.reduce<readonly ToolCall[]>((all, { index, function: called }) => {
    const { name, arguments: given } = all[index] ?? { name: "", arguments: "" };
    const call = { name: name + (called?.name ?? ""), arguments: given + (called?.arguments ?? "") };
    return index < all.length ? all.with(index, call) : [...all, call];
  }, answer.calls);
  return {
    text: answer.text + (content ?? ""),
    thinking: answer.thinking + (thinking ?? ""),
    calls,
    finish: choice.finish_reason ?? answer.finish,
  };
}
