import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { type SentMessage, streamChat } from "../site/chat-client.ts";
import { type CliCommand, commandIn, readBy, type CliContext } from "../terminal/command-line.ts";
import { interruptedCode, untilInterrupted } from "../terminal/interrupt.ts";
import { siteUrl } from "../site/find-gateway.ts";
import { siteAtHand } from "../site/logins.ts";

interface Options {
  readonly system?: string;
  readonly baseUrl?: string;
}

export function chatCommand(context: CliContext): CliCommand {
  return commandIn("chat", context)
    .argument("<model>", "the model, as clients name it")
    .argument("[prompt...]", "one message; without it, what comes on standard input, or a chat on a terminal")
    .option("--system <text>", "a system message before the first one")
    .option(
      "--base-url <url>",
      "the base URL of a site (TRUNKLINE_BASE_URL); otherwise the gateway here",
      readBy(siteUrl),
    )
    .more(`
In a chat, Ctrl-C stops an answer and Ctrl-D ends the chat. Lines that are pasted together are one message. What a model
thinks is shown dim, and on a terminal only.

It takes an API key: the one in TRUNKLINE_KEY, otherwise that of a "trunkline login" at the site, otherwise the one that
"trunkline up" keeps in the folder TRUNKLINE_STATE_DIR (.trunkline). NODE_EXTRA_CA_CERTS names the file of an authority that is not public.

Examples:
  trunkline chat llama3.2
  trunkline chat llama3.2 'Why is the sky blue?'
  trunkline chat llama3.2 --system 'Summarise in one sentence.' < README.md
  trunkline chat llama3.2 --base-url https://models.example.org`)
    .action(async (model: string, words: readonly string[], given: Options) => {
      const say = conversation(model, given, context);
      const { stdin = process.stdin } = context;
      if (words.length > 0) await say(words.join(" "));
      else if (stdin.isTTY) await talk(say, context);
      else await say(await wholeText(stdin));
    });
}

type Say = (message: string) => Promise<void>;

/** Returns a function that sends a message with those before it, and shows the answer. */
function conversation(model: string, { system, baseUrl }: Options, context: CliContext): Say {
  const site = siteAtHand(context.environment, baseUrl, "--base-url");
  let messages: readonly SentMessage[] = system === undefined ? [] : [{ role: "system", content: system }];
  return async (message) => {
    const asked = [...messages, { role: "user", content: message } as const];
    using interrupted = untilInterrupted();
    const { signal } = interrupted;
    try {
      const content = await show(streamChat(site, { model, messages: asked, signal }), context);
      messages = [...asked, { role: "assistant", content }];
    } catch (error) {
      throw signal.aborted ? new StartFailure(interruptedCode, "Interrupted: the machine was told to stop.") : error;
    }
  };
}

const dim = "\u001b[2m";
const plain = "\u001b[22m";

/** Writes an answer as it comes and returns its text. Only a terminal shows what the model thinks. */
async function show(
  answer: ReturnType<typeof streamChat>,
  { stdout, stderr, environment }: CliContext,
): Promise<string> {
  const [begin, end] = environment["NO_COLOR"] ? ["", ""] : [dim, plain];
  let [text, isThinking, isCut] = ["", false, false];
  try {
    for await (const { delta, finish_reason: finish } of answer) {
      if (stdout.isTTY && delta.reasoning_content) {
        stdout.write((isThinking ? "" : begin) + printable(delta.reasoning_content));
        isThinking = true;
      }
      if (delta.content) {
        stdout.write((isThinking ? `${end}\n\n` : "") + (stdout.isTTY ? printable(delta.content) : delta.content));
        isThinking = false;
        text += delta.content;
      }
      isCut ||= finish === "length";
    }
  } finally {
    if (isThinking) stdout.write(`${end}\n`);
    else if (text !== "" && !text.endsWith("\n")) stdout.write("\n");
  }
  if (isCut) stderr.write("The answer reached its limit of tokens (finish_reason: length).\n");
  return text;
}

/** Removes the characters with which a model could control the terminal. */
function printable(text: string): string {
  return text.replace(/[[\p{Cc}\p{Bidi_Control}]--[\n\t]]/gv, "");
}

/** Takes messages from a terminal until Ctrl-D. A request that fails, or is interrupted, ends no chat. */
async function talk(say: Say, context: CliContext): Promise<void> {
  const history: string[] = [];
  for (;;) {
    const message = await readMessage(history, context);
    if (message === undefined) return;
    if (message.trim() === "") continue;
    await say(message).catch((error: unknown) => {
      if (!(error instanceof StartFailure)) throw error;
      context.stderr.write(`${error.message}\n`);
    });
  }
}

/** Lines that follow each other within this time were pasted together. */
const pasteMs = 30;

/** Reads one message from the terminal. Returns undefined at Ctrl-D and at Ctrl-C. */
function readMessage(history: string[], { clock }: CliContext): Promise<string | undefined> {
  const lines: string[] = [];
  const { promise, resolve: tell } = Promise.withResolvers<string | undefined>();
  // Each message has an interface of its own: while none is open, the terminal sends Ctrl-C as a signal.
  const terminal = createInterface({ input: process.stdin, output: process.stderr, prompt: "> ", history });
  terminal.on("history", (all) => void history.splice(0, history.length, ...all));
  terminal.on("SIGINT", () => terminal.close());
  terminal.on("close", () => {
    if (lines.length === 0) process.stderr.write("\n");
    tell(lines.length === 0 ? undefined : lines.join("\n"));
  });
  terminal.on("line", (line) => {
    const count = lines.push(line);
    clock.after(pasteMs, () => {
      if (lines.length === count && terminal.line === "") terminal.close();
    });
  });
  terminal.prompt();
  return promise;
}

const promptBytesMax = 16 * 1024 * 1024;

async function wholeText(stdin: Readable): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stdin) {
    pieces.push(Buffer.from(piece));
    bytes += piece.length;
    if (bytes > promptBytesMax) {
      throw new StartFailure(exitCodes.usage, `The message is longer than ${promptBytesMax} bytes (promptBytesMax).`);
    }
  }
  const text = Buffer.concat(pieces).toString();
  if (text.trim() !== "") return text;
  throw new StartFailure(exitCodes.usage, "There is no message: name one after the model, or pipe one in.");
}
