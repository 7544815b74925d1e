import type { Socket } from "node:net";
import { parseKeyToken, type ParsedKeyToken } from "#shared/keys/key-token.ts";
import { bearerText } from "./bearer-text.ts";

interface Presented {
  readonly authorization: string;
  readonly parsed: ParsedKeyToken | undefined;
}

/**
 * What each open connection presented last, as it was read: a client says the same with every request, and to read it
 * and make its print takes longer than all that is asked of a known key. Whether the key is good is asked every time.
 */
export class PresentedKeys {
  readonly #latest = new WeakMap<Socket, Presented>();

  /** What an Authorization header presents as a key; nothing where it presents none. */
  read(authorization: string | undefined, connection: Socket): ParsedKeyToken | undefined {
    if (authorization === undefined) return undefined;
    const latest = this.#latest.get(connection);
    if (latest?.authorization === authorization) return latest.parsed;
    const text = bearerText(authorization);
    const parsed = text === undefined ? undefined : parseKeyToken(text);
    this.#latest.set(connection, { authorization, parsed });
    return parsed;
  }
}
