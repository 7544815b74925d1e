/** One request as a client sent it, and the head of what it was answered. */
export interface Sent {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
  /** Undefined until there is an answer, and for good where there is none. */
  answered: { readonly status: number; readonly headers: Headers } | undefined;
  readonly atMs: number;
}

/** The `fetch` that every client lets its user name: it does what the usual one does, and keeps what went over it. */
export class WatchedFetch {
  readonly sent: Sent[] = [];

  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const request = new Request(input, init);
    const { pathname: path } = new URL(request.url);
    const headers = new Headers(request.headers);
    const kept: Sent = { path, headers, body: fieldsOf(init.body), answered: undefined, atMs: performance.now() };
    this.sent.push(kept);
    const response = await fetch(input, init);
    kept.answered = { status: response.status, headers: response.headers };
    return response;
  };

  /** The statuses that came, in their order. */
  get statuses(): readonly (number | undefined)[] {
    return this.sent.map(({ answered }) => answered?.status);
  }

  /** What was said of fields without effect, over all answers. */
  get ignored(): readonly string[] {
    return this.sent.flatMap(({ answered }) => answered?.headers.get("x-trunkline-ignored") ?? []);
  }
}

function fieldsOf(body: unknown): Record<string, unknown> {
  return typeof body === "string" ? (JSON.parse(body) as Record<string, unknown>) : {};
}
