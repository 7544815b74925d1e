import type { AnswerRenderer } from "../../services/gateway/jobs/answer-parts.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { addRecords, eventOf, jsonRecord, openRecord, RecordReader, type DataRecord } from "#shared/protocol/frame.ts";

/** The payload of a data frame with these records. */
export function payloadOfRecords(records: readonly DataRecord[]): Buffer {
  return Buffer.from(records.map((record) => openRecord(record) + record.text).join(""));
}

/** The payload of a data frame with these answer events. */
export function payloadOf(...events: readonly AnswerEvent[]): Buffer {
  const records: DataRecord[] = [];
  for (const event of events) addRecords(event, records);
  return payloadOfRecords(records);
}

/** The payload of a data frame that answers a `models` or `manage` job. */
export function jsonPayload(...values: readonly unknown[]): Buffer {
  return payloadOfRecords(values.map(jsonRecord));
}

export function recordsIn(payload: Uint8Array): DataRecord[] {
  const reader = new RecordReader({ textMax: Infinity, broken: (what) => new Error(what) });
  const records = reader.read(payload);
  if (reader.hasBegun) throw new Error("the payload ends within a record");
  return records;
}

export function eventsIn(payload: Uint8Array): AnswerEvent[] {
  return recordsIn(payload).map((record) => {
    const event = eventOf(record);
    if (event === undefined) throw new Error(`this is no answer event: ${record.head} ${record.text}`);
    return event;
  });
}

/** The payload of a data frame that is a whole answer of this text. */
export function saying(text: string): Buffer {
  return payloadOf({ kind: "text", text }, { kind: "finish", reason: "stop" });
}

/** The text of a whole chat answer. */
export async function contentOf(response: Response): Promise<unknown> {
  const answer = (await response.json()) as { choices?: { message: { content: unknown } }[] };
  return answer.choices?.[0]?.message.content;
}

/** Renders an answer as its bare text. */
export const plainly = (): AnswerRenderer => ({
  push: (events) => Buffer.from(events.map((event) => (event.kind === "text" ? event.text : "")).join("")),
  end: () => new Uint8Array(),
});
