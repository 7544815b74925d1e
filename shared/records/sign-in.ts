import { z } from "zod";
import { dayMs } from "../process/clock.ts";
import { type AuditEntry, auditEntry } from "./audit-entry.ts";
import type { KeyStore, UnreadRecord } from "./key-store.ts";

/** The sign-ins that a store keeps, and for how long; the oldest are removed first. */
export const signInsMax = 10_000;
export const signInsKeptMs = 400 * dayMs;

/** The action of a sign-in. */
export const signedIn = "signed_in";
/** The action of somebody who cancels a request. */
export const requestCancelled = "request_cancelled";
/** The actions of an admin who reads or removes the captured content of a request. */
export const contentRead = "content_read";
export const contentForgotten = "content_forgotten";
/** The actions that change no record. */
export const actNames = [signedIn, requestCancelled, contentRead, contentForgotten] as const;
export type ActName = (typeof actNames)[number];

/**
 * A sign-in to the console, or what somebody did to a request, in the shape of the trail. The key is the one that the session
 * stands for, or that of the request. Gateways follow the trail and none of these, which stand in a list of their own.
 */
export const signIn = auditEntry.extend({ action: z.enum(actNames) });
export type SignIn = Readonly<z.infer<typeof signIn>>;

export interface SignIns {
  /** Adds a sign-in, and removes those beyond `signInsMax` and `signInsKeptMs`. */
  noteSignIn(entry: SignIn): Promise<void>;
  /** Returns the latest sign-ins, the oldest of them first. */
  signIns(entriesMax: number, unread?: UnreadRecord[]): Promise<readonly SignIn[]>;
}

/** Returns the latest changes and sign-ins, the oldest of them first. `keys` selects those of these keys. */
export async function readTrail(
  { keys, sessions }: { readonly keys: Pick<KeyStore, "log">; readonly sessions: Pick<SignIns, "signIns"> },
  query: Parameters<KeyStore["log"]>[0],
  unread?: UnreadRecord[],
): Promise<readonly (AuditEntry | SignIn)[]> {
  const { keys: wanted, fits } = query;
  const isFiltered = wanted !== undefined || fits !== undefined;
  const signIns = await sessions.signIns(isFiltered ? signInsMax : query.entriesMax, unread);
  const found = signIns.filter(({ key }) => wanted?.some((each) => each === key) ?? true).filter(fits ?? (() => true));
  const all = [...(await keys.log(query, unread)), ...found];
  return all.toSorted((one, other) => one.at - other.at).slice(-query.entriesMax);
}
