/** The session of a member. */
import { signal } from "@preact/signals";
import { go, path, to } from "../address.ts";
import { type ApiFault, faultOf, refused, send } from "../admin-api.ts";
import { beginChat } from "../chat-state.ts";
import { currency } from "../currency.ts";
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
    const self = await readOwn("GET /me", {});
    currency.value = self.currency;
    session.value = { state: "in", self };
    keepLogin(true);
  } catch (error) {
    const fault = faultOf(error);
    keepLogin(false);
    session.value = { state: "out", fault: refusal ?? (fault.status === 401 ? undefined : fault) };
  }
}

/** The page of a login, and the place where its address is kept. */
const login = "login";

export function isLogin(): boolean {
  return path.value[0] === login;
}

/** Keeps the address of a login while the member signs in, and goes back to it. */
function keepLogin(isIn: boolean): void {
  const kept = sessionStorage.getItem(login);
  if (isLogin() && !isIn) sessionStorage.setItem(login, location.search);
  if (isIn) sessionStorage.removeItem(login);
  if (kept !== null && isIn && !isLogin()) go(to([login]) + kept, { replace: true });
}

/** Ends this session, or all of the member. Throws an `ApiFault` if it may go on. */
export async function signOut({ everywhere = false } = {}): Promise<void> {
  await send(`/console/session${everywhere ? "?everywhere" : ""}`, { method: "DELETE" });
  beginChat();
  session.value = { state: "out" };
  go(to([]));
}
