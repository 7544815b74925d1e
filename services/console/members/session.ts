/** The session of a member. */
import { signal } from "@preact/signals";
import { go, to } from "../address.ts";
import { type ApiFault, faultOf, refused, send } from "../admin-api.ts";
import { takeRefusal } from "../sign-in-refusal.ts";
import { type OwnAnswer, readOwn } from "./member-api.ts";

export type Self = OwnAnswer<"GET /me">;
type MemberState =
  | { readonly state: "opening" }
  | { readonly state: "out"; readonly fault?: ApiFault | undefined }
  | { readonly state: "in"; readonly self: Self };

export const session = signal<MemberState>({ state: "opening" });

/** Takes up the session of the cookie. */
export async function openSession(): Promise<void> {
  refused.tell = () => (session.value = { state: "out" });
  const refusal = takeRefusal();
  try {
    session.value = { state: "in", self: await readOwn("GET /me", {}) };
  } catch (error) {
    const fault = faultOf(error);
    session.value = { state: "out", fault: refusal ?? (fault.status === 401 ? undefined : fault) };
  }
}

/** Ends this session, or all of the member. Throws an `ApiFault` if it may go on. */
export async function signOut({ everywhere = false } = {}): Promise<void> {
  await send(`/console/session${everywhere ? "?everywhere" : ""}`, { method: "DELETE" });
  session.value = { state: "out" };
  go(to([]));
}
