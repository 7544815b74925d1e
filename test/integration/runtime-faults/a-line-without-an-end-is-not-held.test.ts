import { expect, test } from "vitest";
import { runtimeLineBytesMax } from "../../../services/agent/runtimes/runtime-answer.ts";
import { chatOn } from "../../harness/ask-runtime.ts";
import { eventKinds, fakedRuntime, kinds, type AnyChat, type OnChat } from "./faked-runtimes.ts";

const mebibyte = 1024 * 1024;
const sentBytesMax = 64 * mebibyte;
/** What may be held of it: the line up to its limit, its copy, and what the sockets of both sides hold. */
const heldBytesMax = 32 * mebibyte;

const piece = Buffer.alloc(mebibyte / 4, "x");

/** Sends 64 MiB, a piece after the other, unless it is stopped; and tells how much it sent. */
function endless(opening: string, each: Buffer): { onChat: OnChat; sentBytes: () => number } {
  let sent = 0;
  const onChat = async (chat: AnyChat): Promise<void> => {
    chat.raw(opening);
    while (sent < sentBytesMax && !chat.request.closedEarly) {
      chat.raw(each);
      sent += each.length;
      await chat.drained();
    }
    chat.end();
  };
  return { onChat, sentBytes: () => sent };
}

async function heldMost(kind: string, opening: string, each: Buffer) {
  const faked = await fakedRuntime(kind);
  const { onChat, sentBytes } = endless(opening, each);
  faked.play(onChat);
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  const look = (): void => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  };
  let fault: unknown;
  try {
    for await (const _ of chatOn(faked.runtime, { model: "m" }, { onProgress: look })) look();
  } catch (error) {
    fault = error;
  }
  look();
  await faked.runtime.close?.();
  await faked.stop();
  return { fault, heldBytes: most, sentBytes: sentBytes() };
}

test.each(kinds)(
  "64 MiB without an end are refused at the limit, which the message names, and no more is read or held, in one line of %s",
  async (kind) => {
    const opening = kind === "ollama" ? '{"message":{"content":"' : 'data: {"choices":[{"delta":{"content":"';
    const { fault, heldBytes, sentBytes } = await heldMost(kind, opening, piece);
    expect(fault).toMatchObject({
      code: "upstream_error",
      message: expect.stringContaining(`${runtimeLineBytesMax} bytes (runtimeLineBytesMax)`),
    });
    expect(heldBytes).toBeLessThan(heldBytesMax);
    expect(sentBytes).toBeLessThan(sentBytesMax);
  },
);

test.each(eventKinds)(
  "64 MiB without an end are refused at the limit, which the message names, and no more is read or held, in one event of many lines of %s",
  async (kind) => {
    const line = Buffer.from(`data: ${"x".repeat(mebibyte / 4)}\n`);
    const { fault, heldBytes, sentBytes } = await heldMost(kind, "", line);
    expect(fault).toMatchObject({ code: "upstream_error", message: expect.stringContaining("runtimeLineBytesMax") });
    expect(heldBytes).toBeLessThan(heldBytesMax);
    expect(sentBytes).toBeLessThan(sentBytesMax);
  },
);

test.each(kinds)(
  "64 MiB without an end are refused at the limit, which the message names, and no more is read or held, in one refusal of %s",
  async (kind) => {
    const faked = await fakedRuntime(kind);
    let sent = 0;
    faked.play(async (chat) => {
      chat.rawWith(500, '{"error":"');
      while (sent < sentBytesMax && !chat.request.closedEarly) {
        chat.raw(piece);
        sent += piece.length;
        await chat.drained();
      }
      chat.end();
    });
    const asked = Array.fromAsync(chatOn(faked.runtime, { model: "m" }));
    await expect(asked).rejects.toMatchObject({ code: "upstream_error" });
    expect(sent).toBeLessThan(sentBytesMax);
    await faked.runtime.close?.();
    await faked.stop();
  },
);
