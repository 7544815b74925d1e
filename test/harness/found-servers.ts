import { inject } from "vitest";

/** How the tests of this run come to a server; `title` says it in words, with the version. */
export type FoundServer =
  | { readonly by: "lent"; readonly title: string; readonly url: string; readonly variable: string }
  | { readonly by: "docker"; readonly title: string; readonly image: string }
  | { readonly by: "binary"; readonly title: string; readonly path: string };

export interface FoundServers {
  readonly nats: FoundServer;
  readonly redis: FoundServer;
}

declare module "vitest" {
  interface ProvidedContext {
    servers: FoundServers;
  }
}

/** What the global setup found, in any test file. */
export function foundServers(): FoundServers {
  return inject("servers");
}

/** Of which kinds a suite can start servers of its own, to kill and freeze them; `reason` names those it cannot. */
export function ownServers(): { nats: boolean; redis: boolean; reason: string } {
  const { nats, redis } = foundServers();
  const reasons = [nats, redis].flatMap((found) =>
    found.by === "lent" ? [`${found.variable} only lends a server`] : [],
  );
  return { nats: nats.by !== "lent", redis: redis.by !== "lent", reason: reasons.join("; ") };
}

const said = new Set<string>();

/** For `describe.skipIf`: true, and said why, when a suite cannot have servers of its own of these kinds. */
export function lentOnly(...kinds: readonly (keyof FoundServers)[]): boolean {
  const own = ownServers();
  if (kinds.every((kind) => own[kind])) return false;
  const line = `Skipping what kills and freezes ${kinds.join(" and ")} servers of its own: ${own.reason}.`;
  if (!said.has(line)) console.log(line);
  said.add(line);
  return true;
}

/**
 * Some server, for suites that do no harm to it. It is a fresh one unless a server was lent, and others may use a lent
 * one at the same time: such suites name their subjects and keys apart, and never flush.
 */
export interface SomeServer extends AsyncDisposable {
  readonly url: string;
  /** Ends a fresh server; a lent one goes on. */
  stop(): Promise<void>;
}

/** A lent server, which goes on when a suite is over. */
export function lentServer(url: string): SomeServer {
  const nothing = (): Promise<void> => Promise.resolve();
  return { url, stop: nothing, [Symbol.asyncDispose]: nothing };
}
