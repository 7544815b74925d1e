import { hostname, userInfo } from "node:os";
import type { Actor } from "#shared/keys/audit-entry.ts";

const charactersMax = 200;

/** Returns the actor that the audit trail records for a command line. */
export function actor(): Actor {
  return { by: `cli ${userName()}@${hostname()}`.slice(0, charactersMax) };
}

/** Returns the user's name, or the user's number: in a container a user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "somebody");
  }
}
