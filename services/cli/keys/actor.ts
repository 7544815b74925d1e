import { hostname, userInfo } from "node:os";
import type { Actor } from "#shared/keys/audit-entry.ts";

const charactersMax = 200;

/** Whom the audit trail names for what is done at a command line. */
export function actor(): Actor {
  return { by: `cli ${userName()}@${hostname()}`.slice(0, charactersMax) };
}

/** In a container a user may have a number and no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "somebody");
  }
}
