/** The keys that a case may send, each made for the purpose before the first case runs. */
export interface KeysOfTheTest {
  /** May use every model. */
  readonly key: string;
  readonly admin: string;
  readonly expired: string;
  /** So long ago that only its tombstone is left. */
  readonly expiredLongAgo: string;
  readonly revoked: string;
  /** Was taken back and then outlived its time. */
  readonly revokedAndExpired: string;
  /** May use `scripted:plain` and nothing else. */
  readonly narrow: string;
  /** Its responses are stored. */
  readonly storing: string;
}

/** What whoever sends a bad input is told. Every status from 400 on must come with the whole body of an error. */
export interface Told {
  readonly status: number;
  /** The code of the error, when it is one: `null` where OpenAI sends null. */
  readonly code?: string | null;
  /** The part of the request that is at fault; `null` unless said. */
  readonly param?: string;
  /** Headers by their lower-case names; `null` for one that must not be there. */
  readonly headers?: Readonly<Record<string, string | RegExp | null>>;
  /** What must stand in the body, or must not. */
  readonly says?: RegExp;
  readonly saysNot?: RegExp;
}

/** One bad input as data: what goes over the wire, and what comes back. */
export interface Case {
  /** The rows of the list of bad inputs that it stands for. */
  readonly rows: readonly number[];
  readonly what: string;
  readonly sent: (keys: KeysOfTheTest) => string | Buffer;
  /** The answers in their order; none when the connection is only closed. */
  readonly told: readonly Told[];
  /** What becomes of the connection: `open` is proved by another request on it. `open` unless said. */
  readonly afterwards?: "open" | "closed";
  /** The sender says that it has sent all (a FIN) once its bytes are out. */
  readonly hangsUp?: boolean;
  /** What must not stand in any line that the process logged. */
  readonly unlogged?: RegExp;
}

/** The rows of one section of the list. */
export interface Section {
  readonly title: string;
  readonly cases: readonly Case[];
}
