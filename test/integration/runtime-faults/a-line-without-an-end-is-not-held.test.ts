import { expect, test } from "vitest";
import { runtimeLineBytesMax } from "../../../services/agent/runtimes/runtime-answer.ts";
import { chatOn } from "../../harness/ask-runtime.ts";
import { eventKinds, fakedRuntime, kinds, type AnyChat } from "./faked-runtimes.ts";

const mebibyte = 1024 * 1024;
const sentBytesMax = 64 * mebibyte;
/** What may be held of it: the line up to its limit, its copy, and what the sockets of both sides hold. */
const heldBytesMax = 32 * mebibyte;

const piece = Buffer.alloc(mebibyte / 4, "x");

type Form = readonly [
  form: string,
  kinds: readonly string[],
  open: (chat: AnyChat, kind: string) => void,
  each: Buffer,
];

const line = (chat: AnyChat, kind: string): void =>
  chat.raw(kind === "ollama" ? '{"message":{"content":"' : 'data: {"choices":[{"delta":{"content":"');
const manyLines = Buffer.from(`data: ${"x".repeat(mebibyte / 4)}\n`);
const forms: readonly Form[] = [
  ["one line", kinds, line, piece],
  ["one event of many lines", eventKinds, () => undefined, manyLines],
  ["one refusal", kinds, (chat) => chat.rawWith(500, '{"error":"'), piece],
];

test.each(forms.flatMap(([form, of, ...rest]) => of.map((kind) => [form, kind, ...rest] as const)))(
  "64 MiB without an end are refused at the limit, and no more is read or held, in %s of %s",
  async (form, kind, open, each) => {
    const faked = await fakedRuntime(kind);
    let sent = 0;
    faked.play(async (chat) => {
      open(chat, kind);
      while (sent < sentBytesMax && !chat.request.closedEarly) {
        chat.raw(each);
        sent += each.length;
        await chat.drained();
      }
      chat.end();
    });
    const before = process.memoryUsage().arrayBuffers;
    let heldMost = 0;
    const look = (): void => {
      heldMost = Math.max(heldMost, process.memoryUsage().arrayBuffers - before);
    };
    const read = async (): Promise<void> => {
      for await (const _ of chatOn(faked.runtime, { model: "m" }, { onProgress: look })) look();
    };
    const limit = { message: expect.stringContaining(`${runtimeLineBytesMax} bytes (runtimeLineBytesMax)`) };
    await expect(read()).rejects.toMatchObject({ code: "upstream_error", ...(form !== "one refusal" && limit) });
    look();
    expect(heldMost).toBeLessThan(heldBytesMax);
    expect(sent).toBeLessThan(sentBytesMax);
    await faked.runtime.close?.();
    await faked.stop();
  },
);
