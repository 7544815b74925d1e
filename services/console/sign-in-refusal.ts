import type { OpenIdRefusal } from "#shared/admin/session-operations.ts";
import { go } from "./address.ts";
import { ApiFault } from "./admin-api.ts";

/** The reasons for which the gateway sent the browser back from the OpenID provider without a session. */
const refusals: Readonly<Record<OpenIdRefusal, string>> = {
  not_begun: "That sign-in took too long, or was begun in another browser. Begin again.",
  no_role: "You have no role here. Ask the operator of this site, who decides it by your groups.",
  refused: "The provider did not confirm who you are. Begin again; the gateway's log has the reason.",
  long_subject:
    "The subject by which the provider names you has more than 1,000 characters (subjectCharactersMax). Ask its operator for a shorter one.",
  away: "The provider does not answer. Begin again in a moment, or sign in with a link.",
  older: "A gateway of this site is too old for sign-ins here. Ask the operator of this site to update it",
};

/** Returns the refusal in the address, with the name of a gateway that is too old, and takes it out of there. */
export function takeRefusal(): ApiFault | undefined {
  const [, code, gateway] = /^#refused=(\w+)(?:\.([\w.-]{1,60}))?$/.exec(location.hash) ?? [];
  if (code === undefined) return undefined;
  go(location.pathname, { replace: true });
  const words = refusals[code as OpenIdRefusal] ?? refusals.refused;
  return new ApiFault(401, { message: code === "older" ? `${words}: ${gateway ?? "it has no name"}.` : words });
}
