/** The viewer's session, which a link or a key opened. */
import { signal } from "@preact/signals";
import { noCurrency } from "#shared/money/money.ts";
import type { ShownMe } from "#shared/admin/session-operations.ts";
import { go, to } from "./address.ts";
import { type ApiFault, faultOf, read, refused, send } from "./admin-api.ts";
import { beginChat } from "./chat-state.ts";
import { currency } from "./currency.ts";
import { followGateway, leaveGateway } from "./live.ts";
import { takeRefusal } from "./sign-in-refusal.ts";

type Session =
  | { readonly state: "opening" }
  | { readonly state: "out"; readonly fault?: ApiFault | undefined }
  | { readonly state: "in"; readonly me: ShownMe };

export const session = signal<Session>({ state: "opening" });

const linkInFragment = /^#sign-in=(.+)$/;

/** Spends the link in the fragment if there is one, and takes up the session of the cookie otherwise. */
export async function openSession(): Promise<void> {
  refused.tell = () => leave();
  const [, link] = linkInFragment.exec(location.hash) ?? [];
  // A link is good once. It leaves the address at once, so that neither the history nor a screenshot keeps it.
  if (link !== undefined) go(location.pathname + location.search, { replace: true });
  await (link === undefined ? enter() : signIn(link));
  const refusal = takeRefusal();
  if (refusal !== undefined && session.value.state === "out") session.value = { state: "out", fault: refusal };
}

/** Opens a session with the token of a link, or with an admin or viewer key. */
export async function signIn(token: string): Promise<void> {
  try {
    await send("/console/session", { method: "POST", body: { token } });
    await enter();
  } catch (error) {
    session.value = { state: "out", fault: faultOf(error) };
  }
}

/** Ends this session, or all sessions and links of its key. Throws an `ApiFault` if the session may go on. */
export async function signOut({ everywhere = false } = {}): Promise<void> {
  await send(`/console/session${everywhere ? "?everywhere" : ""}`, { method: "DELETE" });
  beginChat();
  leave();
  go(to([]));
}

async function enter(): Promise<void> {
  try {
    const me = await read("GET /me", {});
    currency.value = me.currency ?? noCurrency;
    session.value = { state: "in", me };
    followGateway();
  } catch (error) {
    const fault = faultOf(error);
    session.value = { state: "out", fault: fault.status === 401 ? undefined : fault };
  }
}

function leave(): void {
  leaveGateway();
  if (session.value.state === "in") session.value = { state: "out" };
}

/** True if the session may change machines, models and routes. */
export function mayChange(): boolean {
  return session.value.state === "in" && session.value.me.role !== "viewer";
}

/** True if the session may change keys. */
export function mayChangeKeys(): boolean {
  return session.value.state === "in" && session.value.me.role === "admin";
}

/** The URL of the endpoint for clients of the models. */
export function baseUrl(): string {
  return session.value.state === "in" ? session.value.me.base_url : "";
}

/** The version of the gateway that this page asks. */
export function gatewayVersion(): string {
  return session.value.state === "in" ? session.value.me.version : "";
}
