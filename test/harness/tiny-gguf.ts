import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GgufWriter } from "./gguf-writer.ts";

/** Ends each prompt with a token that no script has, so that the answer starts at its beginning. */
export const plainTemplate =
  "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}" +
  "{% if add_generation_prompt %}<|assistant|>{% endif %}";

export interface TinyGguf {
  /** Also the name of its file. */
  readonly name: string;
  /**
   * What it answers at temperature 0, by the token that ends the prompt; `<|assistant|>` with the plain template. Each
   * piece is one token, and names its successor: a piece cannot come twice with different ones.
   */
  readonly scripts: Readonly<Record<string, readonly string[]>>;
  /** Whether the first script begins anew instead of ending. */
  readonly endless?: boolean;
  /** Null for a file without one. */
  readonly template?: string | null;
  readonly contextTokens?: number;
  /** A seed for weights that are nothing but noise: the answer is then whatever the dice of the sampling say. */
  readonly noise?: number;
  /** A model that only embeds: the vector of a text is the mean of those of its tokens. */
  readonly embeds?: boolean;
  readonly organization?: string;
  /** Texts that are one token each, beside those of the scripts; every other text is a token for each of its bytes. */
  readonly words?: readonly string[];
  /** For a model of noise: as narrow as can be, so that a long prompt is read in seconds. */
  readonly narrow?: boolean;
}

/** The tokens of a text, byte by byte: one character may then come in several tokens. */
export function byteTokens(text: string): string[] {
  return [...Buffer.from(text)].map(byteToken);
}

/**
 * Writes a GGUF file of some megabytes that any llama.cpp loads, and that answers an exact script: one block whose
 * attention and feed-forward weights are zero, so that the next token depends on the current one alone, an embedding
 * that is the identity, and an output matrix in which each token names its successor.
 */
export async function writeTinyGguf(folder: string, tiny: TinyGguf): Promise<string> {
  const path = join(folder, `${tiny.name}.gguf`);
  await writeFile(path, tinyGguf(tiny));
  return path;
}

const tokenTypes = { unknown: 2, control: 3, userDefined: 4, byte: 6 } as const;
const controls = ["<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"];
const headTokens = 64;

class Vocabulary {
  readonly tokens: string[] = [];
  readonly types: number[] = [];
  readonly #ids = new Map<string, number>();

  /** The id of a token, which is made when there is none of this text. */
  id(token: string, type: number = tokenTypes.userDefined): number {
    const known = this.#ids.get(token);
    if (known !== undefined) return known;
    this.#ids.set(token, this.tokens.length);
    this.types.push(type);
    return this.tokens.push(token) - 1;
  }
}

function tinyGguf(tiny: TinyGguf): Buffer {
  const { scripts, template = plainTemplate, contextTokens = 512 } = tiny;
  const vocabulary = new Vocabulary();
  const unknown = vocabulary.id("<unk>", tokenTypes.unknown);
  const beginning = vocabulary.id("<s>", tokenTypes.control);
  const end = vocabulary.id("</s>", tokenTypes.control);
  for (let byte = 0; byte < 256; byte++) vocabulary.id(byteToken(byte), tokenTypes.byte);
  for (const control of [...controls, ...Object.keys(scripts)]) vocabulary.id(control, tokenTypes.control);
  for (const word of tiny.words ?? []) vocabulary.id(word);
  const successors = successorsOf(scripts, { vocabulary, end, endless: tiny.endless ?? false });

  const count = vocabulary.tokens.length;
  const width = tiny.narrow ? headTokens : Math.ceil(count / headTokens) * headTokens;
  const heads = width / headTokens;
  const file = new GgufWriter();
  file.text("general.architecture", "llama");
  file.text("general.name", tiny.name);
  if (tiny.organization !== undefined) file.text("general.organization", tiny.organization);
  file.number("llama.context_length", contextTokens);
  file.number("llama.embedding_length", width);
  file.number("llama.block_count", 1);
  file.number("llama.feed_forward_length", headTokens);
  file.number("llama.attention.head_count", heads);
  file.number("llama.attention.head_count_kv", heads);
  file.float("llama.attention.layer_norm_rms_epsilon", 1e-5);
  file.number("llama.rope.dimension_count", headTokens);
  file.number("llama.vocab_size", count);
  if (tiny.embeds) file.number("llama.pooling_type", meanPooling);
  file.text("tokenizer.ggml.model", "llama");
  file.texts("tokenizer.ggml.tokens", vocabulary.tokens);
  file.floats("tokenizer.ggml.scores", new Float32Array(count));
  file.integers("tokenizer.ggml.token_type", Int32Array.from(vocabulary.types));
  file.number("tokenizer.ggml.bos_token_id", beginning);
  file.number("tokenizer.ggml.eos_token_id", end);
  file.number("tokenizer.ggml.unknown_token_id", unknown);
  file.flag("tokenizer.ggml.add_bos_token", false);
  file.flag("tokenizer.ggml.add_space_prefix", false);
  if (template !== null) file.text("tokenizer.chat_template", template);

  const random = randomOf(tiny.noise ?? 0);
  const matrix = (rows: number, value: (row: number, column: number) => number): Float32Array =>
    Float32Array.from({ length: rows * width }, (_, at) => value(Math.floor(at / width), at % width));
  const zeros = (length: number): Float32Array => new Float32Array(length);
  const ones = (): Float32Array => new Float32Array(width).fill(1);
  const next = (row: number, column: number): number => ((successors.get(column) ?? end) === row ? 4 : 0);

  file.tensor(
    "token_embd.weight",
    [width, count],
    matrix(count, (row, column) => (row === column ? 1 : 0)),
  );
  file.tensor("output_norm.weight", [width], ones());
  file.tensor("output.weight", [width, count], matrix(count, tiny.noise === undefined ? next : () => random() / 4));
  file.tensor("blk.0.attn_norm.weight", [width], ones());
  file.tensor("blk.0.ffn_norm.weight", [width], ones());
  for (const part of ["q", "k", "v", "output"]) {
    file.tensor(`blk.0.attn_${part}.weight`, [width, width], zeros(width * width));
  }
  file.tensor("blk.0.ffn_gate.weight", [width, headTokens], zeros(width * headTokens));
  file.tensor("blk.0.ffn_up.weight", [width, headTokens], zeros(width * headTokens));
  file.tensor("blk.0.ffn_down.weight", [headTokens, width], zeros(width * headTokens));
  return file.bytes();
}

const meanPooling = 1;

function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

function successorsOf(
  scripts: TinyGguf["scripts"],
  means: { readonly vocabulary: Vocabulary; readonly end: number; readonly endless: boolean },
): ReadonlyMap<number, number> {
  const { vocabulary, end, endless } = means;
  const successors = new Map<number, number>();
  const follow = (token: number, next: number, script: string): void => {
    if ((successors.get(token) ?? next) !== next) {
      throw new Error(`'${vocabulary.tokens[token]}' has two successors in the script after '${script}'`);
    }
    successors.set(token, next);
  };
  for (const [start, pieces] of Object.entries(scripts)) {
    const tokens = pieces.map((piece) => vocabulary.id(piece));
    const path = [vocabulary.id(start), ...tokens, endless ? (tokens[0] ?? end) : end];
    for (const [at, token] of path.slice(0, -1).entries()) follow(token, path[at + 1] ?? end, start);
  }
  return successors;
}

/** Numbers around 0 that look random and are the same each time. */
function randomOf(seed: number): () => number {
  let state = (seed + 1) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}
