import { z } from "zod";
import type { AlarmStore } from "../alerts/alarm-store.ts";
import type { FaultCode } from "../fault/fault.ts";
import type { HistoryReader } from "../history/history.ts";
import type { Peppers } from "../keys/pepper.ts";
import type { Clock } from "../process/clock.ts";
import type { linesMedia } from "../protocol/model.ts";
import { replicatedIn } from "../records/change-key.ts";
import type { RecordChanged } from "../records/change-record.ts";
import type { Actor } from "../records/audit-entry.ts";
import { keyName, type KeyRecord } from "../records/key-record.ts";
import type { KeyStore, UnreadRecord } from "../records/key-store.ts";
import type { MachineStore } from "../records/machine-record.ts";
import type { NamedStores } from "../records/named-records.ts";
import type { SignIns } from "../records/sign-in.ts";
import type { StoredResponses } from "../records/stored-responses.ts";
import type { RequestRecords } from "../requests/request-records.ts";
import type { EndUsers } from "../usage/end-users.ts";
import type { UsageRows } from "../usage/usage.ts";

/**
 * An operation of the admin API as data: its route at the gateway, its document and the calls of the console and the command
 * line are all made from it. An admin key may call all operations, a viewer key those with the method `GET` that are not `forAdmins`.
 */
export interface AdminOperation {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path below the API's prefix, with parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly params: z.ZodType;
  readonly query: z.ZodType;
  readonly body: z.ZodType;
  readonly answer: z.ZodType;
  readonly status: 200 | 201;
  /**
   * The media type of an answer that is a stream of lines or of events, where each one matches `answer`. Undefined for one
   * JSON object.
   */
  readonly media?: typeof linesMedia | typeof eventsMedia;
  /** The faults that this operation may return besides those of every operation. */
  readonly refusals: readonly FaultCode[];
  /** True if it is for admins alone: it changes keys or sessions, or shows the content of requests. */
  readonly forAdmins?: true;
  /** An example body. It holds no secret. */
  readonly example?: object;
}
export const eventsMedia = "text/event-stream";

/** A request whose parts the schemas of its operation have validated. */
export interface Input<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
> {
  readonly params: z.output<Params>;
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
}

/** The store of a site, and whoever works on it: an admin key at a gateway, or the owner of the store at a command line. */
export interface AdminSite extends NamedStores {
  readonly keys: KeyStore;
  readonly machines: MachineStore;
  /** The word for the currency of all prices. */
  readonly currency: string;
  readonly sessions: SignIns;
  readonly captures: StoredResponses;
  readonly peppers: Peppers;
  readonly usage: UsageRows;
  readonly endUsers: Pick<EndUsers, "sealedNames">;
  readonly requests: RequestRecords;
  readonly alarms: Pick<AlarmStore, "read">;
  readonly history: HistoryReader;
  /** Returns true while an agent that was not paired has this name, as far as a gateway can be asked. */
  readonly isNameUsed: (machine: string) => boolean | Promise<boolean>;
  readonly clock: Pick<Clock, "wall">;
  /** Returns the reason for which a gateway does not call a URL. Undefined at a command line, which has not its settings. */
  readonly refusalOfAlert?: (url: URL) => string | undefined;
  /** The location of the store, for the messages of its owner. */
  readonly place?: string;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
  /** The admin key that asks. Undefined for the owner of the store. */
  readonly admin?: KeyRecord | undefined;
}

/** Returns the function that describes an operation which runs on `Site`. */
export function operationOn<Site>() {
  return <
    const Method extends string,
    const Path extends string,
    Params extends z.ZodType,
    Query extends z.ZodType,
    Body extends z.ZodType,
    Answer extends z.ZodType,
  >(
    operation: AdminOperation &
      Readonly<{ method: Method; path: Path; params: Params; query: Query; body: Body; answer: Answer }> & {
        run(input: Input<Params, Query, Body>, site: Site): Promise<z.output<Answer>>;
      },
  ) => operation;
}

/** Describes an operation that needs nothing but the store. A gateway and the command line both run it. */
export const onStore = operationOn<AdminSite>();

/** Describes an operation that needs a gateway, with its fleet. */
export function atGateway<const Of extends AdminOperation>(operation: Of): Of {
  return operation;
}

export const nothing = z.strictObject({});

/** The usual fields of an operation: the request has neither parameters nor a body. */
export const reads = {
  method: "GET",
  params: nothing,
  query: nothing,
  body: nothing,
  status: 200,
  refusals: [],
} as const;

/** The place of a request in the order in which requests ended. */
export const requestCursor = /^[1-9]\d{0,15}(?:-\d{1,16})?$/;

/** Returns the schema of an answer that lists entries. */
export function listOf<Entry extends z.ZodType>(data: z.ZodArray<Entry>) {
  return z.strictObject({ object: z.literal("list"), data });
}

/** Returns the schema of a list of stored records. */
export function recordsOf<Entry extends z.ZodType>(data: z.ZodArray<Entry>) {
  return listOf(data).extend({
    // Gateways of 0.2.0 do not count them.
    unread: z
      .int()
      .default(0)
      .describe("Records that this version of Trunkline cannot read. The list leaves them out."),
  });
}

/** Answers with the records of a list, and with the number of those that it leaves out. */
export async function listRecords<Kept, Shown>(
  list: (unread: UnreadRecord[]) => Promise<readonly Kept[]>,
  show: (record: Kept) => Shown,
) {
  const unread: UnreadRecord[] = [];
  const data = (await list(unread)).map(show);
  return { object: "list" as const, data, unread: unread.length };
}

/** Returns the schema of a whole number in a URL. */
export function numberInUrl<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((text) => (typeof text === "string" && /^\d{1,9}$/.test(text) ? Number(text) : text), schema);
}

export const timeInUrl = z.iso.datetime({ offset: true, error: "must be a time, such as 2026-01-31T14:00:00Z" });

/** A filter by keys. */
export const keyText = keyName.describe("Only of the key with this id, or of the keys with this name.");

export const yesOrNo = z.stringbool({ truthy: ["true"], falsy: ["false"] });

const perPageMax = 1_000;
const perPageDefault = 100;

/** The length of a page, as a number in a URL. */
export const pageLength = numberInUrl(
  z.int().min(1).max(perPageMax).default(perPageDefault).describe("The most entries of a page."),
);

/** A field of answers to changes. */
export const replicated = z
  .boolean()
  .optional()
  .describe(
    "Told of a change that takes a right away, where Redis has a replica: whether one has the change. At false a failover " +
      "can lose it: repeat it until it is true.",
  );

/** A field of answers to changes. Gateways of 0.3.0 leave it out. */
export const outcome = z.enum(["changed", "unchanged"]).optional().describe("unchanged: it was so before.");

/** The fields of an answer to the change of a record, beside those of the record. */
export const changeOutcome = { outcome, replicated };

/** Answers to the change of a record. */
export function showChange<Kept, Shown>(
  { record, outcome: after, replication }: RecordChanged<Kept>,
  show: (record: Kept) => Shown,
) {
  return { ...show(record), outcome: after, ...replicatedIn({ replication }) };
}
