import type { Socket } from "node:net";
import { parseKeyToken, type ParsedKeyToken } from "#shared/keys/key-token.ts";
import { bearerText } from "./bearer-text.ts";

interface Presented {
  readonly authorization: string;
  readonly parsed: ParsedKeyToken | undefined;
}

/**
 * The key that each open connection presented last, already parsed. A client presents the same key with every request.
 * To parse it and make its print takes longer than all other checks of a known key. The key's validity is checked every
 * time.
 */
export class PresentedKeys {
  readonly #latest = new WeakMap<Socket, Presented>();

  /** Returns the parsed key of an Authorization header; undefined if the header presents none. */
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
