import * as fc from "fast-check";
import { expect, test } from "vitest";
import { rendererFor } from "#shared/answer/answer-shape.ts";
import { AnswerAssembly } from "#shared/answer/assemble-answer.ts";
import { Fault } from "#shared/fault/fault.ts";
import { CallsAsText } from "../../../services/agent/runtimes/calls-as-text.ts";
import { OpenAiChatAnswer } from "../../../services/agent/runtimes/openai/openai-chat-answer.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server-profile.ts";
import { readAnswer } from "../../../services/agent/runtimes/openai/read-answer.ts";
import type { RuntimeConnection } from "../../../services/agent/runtimes/runtime-connection.ts";
import { head } from "../answer/answers.ts";
import { anyEvents, chunk } from "./any-chunks.ts";

const room = 12;

/** A connection over which one answer comes in these pieces. */
function bringing(pieces: readonly Uint8Array[]): RuntimeConnection {
  const stream = () => {
    let isEnough = false;
    return {
      complete: () => (isEnough = true),
      handTo: async (take: (piece: Uint8Array) => Promise<void> | undefined) => {
        for (const piece of pieces) if (!isEnough) await take(piece);
      },
    };
  };
  return { stream } as unknown as RuntimeConnection;
}

/** What a client is sent of a stream, with how many tokens, and how it ends; and how many texts were not taken apart. */
async function sent(
  pieces: readonly Uint8Array[],
  { asBytes, offersTools = false }: { asBytes: boolean; offersTools?: boolean },
) {
  const answer = new OpenAiChatAnswer({
    choices: 1,
    parallelToolCalls: true,
    topLogprobs: 0,
    needsLogprobs: false,
    dropsUnreadableCalls: false,
  });
  const assembly = new AnswerAssembly();
  const renderer = rendererFor("chat-stream", head);
  const written: Uint8Array[] = [];
  let whole = 0;
  let shown: string | undefined;
  const reading = readAnswer(answer, {
    question: { path: "", signal: new AbortController().signal },
    connection: bringing(pieces),
    profile: otherServer,
    run: { contextWindow: 1_000, onProgress: (silence) => (shown = silence) },
    meant: offersTools ? undefined : new CallsAsText(),
  });
  const tokens: number[] = [];
  let fault: string | undefined;
  try {
    await reading.handTo?.({
      events: (events) => {
        written.push(renderer?.push(assembly.push(events)) ?? Buffer.from("no renderer"));
        tokens.push(assembly.outputTokens);
        return undefined;
      },
      ...(asBytes && {
        texts: (texts) => {
          whole += texts.bounds.length / 2;
          assembly.pushWritten(texts.bounds.length / 2);
          written.push(renderer?.pushWritten?.(texts, room).subarray(room) ?? Buffer.from("not as bytes"));
          tokens.push(assembly.outputTokens);
          return undefined;
        },
      }),
    });
  } catch (error) {
    fault = Fault.from(error).message;
    shown = undefined;
  }
  return { told: { bytes: Buffer.concat(written).toString("latin1"), tokens: tokens.at(-1), fault, shown }, whole };
}

interface Cut {
  readonly at: number;
  /** Before what looks like an event, whether it is one or not. */
  readonly beforeEvent: boolean;
}

const cuts = fc.array(fc.record({ at: fc.nat(5_000), beforeEvent: fc.boolean() }), { maxLength: 12 });

function cut(body: Buffer, at: readonly Cut[]): Uint8Array[] {
  const events = [...body.toString("latin1").matchAll(/data: /g)].map(({ index }) => index);
  const placeOf = (one: Cut): number =>
    one.beforeEvent && events.length > 0 ? (events[one.at % events.length] ?? 0) : one.at % (body.length + 1);
  const places = [...new Set(at.map(placeOf))].toSorted((a, b) => a - b);
  return [...places, body.length].map((end, place) => body.subarray(places[place - 1] ?? 0, end));
}

const lineEnds = fc.constantFrom(
  ...Array<string>(8).fill("\n\n"),
  "\r\n\r\n",
  "\n",
  "\n\n: ",
  "\n\n: still there\n\n",
  "\r\r",
  "\nid: 1\n\n",
);

test("a stream is sent the same whether its texts are taken apart or pass as their bytes, wherever it is cut", async () => {
  const bodies = anyEvents.chain((events) =>
    fc
      .array(lineEnds, { minLength: events.length, maxLength: events.length })
      .map((ends) => Buffer.from(events.map((data, at) => `data: ${data}${ends[at]}`).join(""))),
  );
  await fc.assert(
    fc.asyncProperty(bodies, cuts, fc.boolean(), async (body, at, offersTools) => {
      const pieces = cut(body, at);
      const [fast, slow] = await Promise.all([
        sent(pieces, { asBytes: true, offersTools }),
        sent(pieces, { asBytes: false, offersTools }),
      ]);
      expect(fast.told).toEqual(slow.told);
    }),
    { numRuns: 3_000 },
  );
});

test("and so is one in which any byte was changed", async () => {
  const body = Buffer.from(
    ["a", "b", "c", "grüße", "世界", "d", "e"].map((content) => `data: ${chunk({ content })}\n\n`).join(""),
  );
  await fc.assert(
    fc.asyncProperty(fc.nat(body.length - 1), fc.nat(255), cuts, async (place, byte, at) => {
      const changed = Buffer.from(body);
      changed[place] = byte;
      const pieces = cut(changed, at);
      expect((await sent(pieces, { asBytes: true })).told).toEqual((await sent(pieces, { asBytes: false })).told);
    }),
    { numRuns: 3_000 },
  );
});

test("nearly all of an ordinary stream passes as its bytes, whether its events come one by one or all at once", async () => {
  const texts = Array.from({ length: 100 }, (_, at) => ["word", " grüße", " 世界"][at % 3] ?? "");
  const finish = chunk({}, { finish_reason: "stop" });
  const events = [
    chunk({ role: "assistant", content: "" }),
    ...texts.map((content) => chunk({ content })),
    finish,
    "[DONE]",
  ];
  const lines = events.map((data) => Buffer.from(`data: ${data}\n\n`));
  for (const pieces of [lines, [Buffer.concat(lines)]]) {
    const { whole, told } = await sent(pieces, { asBytes: true });
    expect(whole).toBeGreaterThan(95);
    expect(told.tokens).toBe(100);
  }
});
