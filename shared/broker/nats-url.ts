export interface NatsUrl {
  readonly servers: string[];
  readonly user?: string;
  readonly pass?: string;
  /** Spoken over WebSocket, which the client library connects to in another way. */
  readonly websocket: boolean;
}

/** The client library ignores what stands before the `@` of a URL, so it is taken out and handed over apart. */
export function readNatsUrl(url: string): NatsUrl {
  const urls = url.split(",").map((part) => new URL(part.trim()));
  const [first] = urls;
  const websocket = first?.protocol === "ws:" || first?.protocol === "wss:";
  const servers = urls.map((each) => `${each.protocol}//${each.host}${each.pathname === "/" ? "" : each.pathname}`);
  return {
    servers,
    websocket,
    ...(first?.username ? { user: decodeURIComponent(first.username) } : {}),
    ...(first?.password ? { pass: decodeURIComponent(first.password) } : {}),
  };
}
