import { setImmediate as nextTurn } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { jsonLines } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";
import { readStream, RuntimeAnswer } from "../../../services/agent/runtimes/runtime-answer.ts";
import type { EmitEvents } from "../../../services/agent/runtimes/runtime.ts";

/** Reads a body of JSON texts, each of which is a text of the answer. Returns functions that send pieces of it. */
function reading(emit: EmitEvents) {
  let handler: Dispatcher.DispatchHandler | undefined;
  const body = new RuntimeAnswer({
    signal: new AbortController().signal,
    faultOf: () => new Fault("bad_request", { message: "refused" }),
    ask: (given) => {
      handler = given;
      return undefined;
    },
  });
  const events: AnswerEvent[] = [];
  const splitter = jsonLines((text) => void events.push({ kind: "text", text: String(text) }));
  const done = readStream(body, { splitter, events, onPiece: () => undefined }, emit);
  const controller = { pause: () => undefined, resume: () => undefined, abort: () => undefined };
  const socket = controller as unknown as Dispatcher.DispatchController;
  handler?.onRequestStart?.(socket, undefined);
  handler?.onResponseStart?.(socket, 200, {});
  return {
    done,
    send: (piece: string) => handler?.onResponseData?.(socket, Buffer.from(piece)),
    end: () => handler?.onResponseEnd?.(socket, {}),
  };
}

const textsOf = (events: readonly AnswerEvent[]): string[] =>
  events.map((event) => (event.kind === "text" ? event.text : event.kind));

test("a stream emits one batch for each piece, and the next batch waits for the taker's promise", async () => {
  const taken: string[][] = [];
  const room = Promise.withResolvers<void>();
  const { done, send, end } = reading((events) => {
    taken.push(textsOf(events));
    return taken.length === 1 ? room.promise : undefined;
  });
  send('"a"\n"b"\n"c');
  await nextTurn();
  send('"\n');
  await nextTurn();
  send('"d"\n');
  await nextTurn();
  expect(taken).toEqual([["a", "b"]]);
  room.resolve();
  end();
  await done;
  expect(taken).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
});

test("events before a fault in the same piece are emitted before the stream fails", async () => {
  const taken: string[] = [];
  const { done, send } = reading((events) => void taken.push(...textsOf(events)));
  const failed = expect(done).rejects.toMatchObject({ message: "The runtime sent a line that is not JSON." });
  send('"a"\noops\n"b"\n');
  await failed;
  expect(taken).toEqual(["a"]);
});
