import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import type { Broker, BrokerMessage } from "#shared/broker/broker.ts";
import { until } from "../harness/until.ts";

/** One broker, to which every call of `connect` is another process. */
export interface BrokerAdapter {
  connect(): Promise<Broker>;
}

export const textOf = (message: BrokerMessage): string => Buffer.from(message.data).toString();
export const bytesOf = (said: string): Uint8Array => Buffer.from(said);

/** Published last, so that whatever should not have come would have come before it. */
export const last = "the last message";

export const untilLast = (heard: readonly string[]): Promise<true> =>
  until(() => heard.includes(last), { what: `${last} to arrive` });

/** Two connections, and a subject that is only theirs: others may be on the same broker. */
export async function pairOn(
  adapter: BrokerAdapter,
): Promise<{ readonly speaker: Broker; readonly listener: Broker; readonly root: string }> {
  const connect = async (): Promise<Broker> => {
    const connection = await adapter.connect();
    onTestFinished(() => connection.close());
    return connection;
  };
  const [speaker, listener] = await Promise.all([connect(), connect()]);
  return { speaker, listener, root: `test-${randomUUID()}` };
}

/** Notes all that comes; from when this resolves nothing is missed. */
export async function listen(connection: Broker, pattern: string, note = textOf): Promise<string[]> {
  const heard: string[] = [];
  connection.subscribe(pattern, (message) => void heard.push(note(message)));
  await connection.flush();
  return heard;
}
