import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

/** A server that belongs to one suite, which may do to it what outages do. Every call resolves when it is so. */
export interface OwnServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Unknown in a container. */
  readonly processId: number | undefined;
  /** SIGKILL: gone at once, as in a crash; its data stay for a restart. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and nobody answers. */
  freeze(): Promise<void>;
  /** SIGCONT: goes on where it was frozen. */
  thaw(): Promise<void>;
  /** On the same port with the same data; kills it first when it still runs. */
  restart(): Promise<void>;
  /** For good, with its data. */
  stop(): Promise<void>;
}

/** What an own server runs in: a process of this machine or a container. A server that has ended ignores signals. */
export interface ServerBody {
  readonly host: string;
  /** Unknown in a container. */
  readonly processId: number | undefined;
  launch(): Promise<void>;
  ended(): Promise<boolean>;
  /** What the server wrote, to tell why it did not start. */
  output(): Promise<string>;
  signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void>;
  discard(): Promise<void>;
}

const startTimeoutMs = 20_000;
const portAttemptsMax = 5;
const portTaken = /address already in use|port is already allocated/i;

/**
 * Starts a server and comes back when it answers. `answers` looks whether it is this very server that does, since on
 * a port that was taken in the meantime somebody else would.
 */
export async function startOwnServer(options: {
  title: string;
  scheme: string;
  port?: number | undefined;
  open: (port: number) => Promise<ServerBody>;
  answers: (body: ServerBody, port: number) => Promise<boolean>;
}): Promise<OwnServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await freePort());
    const body = await options.open(port);
    const start = (): Promise<void> => launch({ ...options, body, port });
    try {
      await start();
      return own({ body, port, start, url: `${options.scheme}://${body.host}:${port}` });
    } catch (error) {
      await body.discard();
      const again = options.port === undefined && attempt < portAttemptsMax && portTaken.test(String(error));
      if (!again) throw error;
    }
  }
}

async function launch(server: {
  title: string;
  body: ServerBody;
  port: number;
  answers: (body: ServerBody, port: number) => Promise<boolean>;
}): Promise<void> {
  const { title, body, port } = server;
  const failed = `${title} did not start on port ${port}`;
  await body.launch().catch((cause: unknown) => {
    throw new Error(`${failed}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  });
  const what = `${title} to answer on port ${port}`;
  const state = await until(
    async () => {
      if (await body.ended()) return "ended";
      return (await server.answers(body, port)) && "answers";
    },
    { what, timeoutMs: startTimeoutMs },
  );
  if (state === "ended") throw new Error(`${failed}: ${await body.output()}`);
}

function own(server: { body: ServerBody; port: number; url: string; start: () => Promise<void> }): OwnServer {
  const { body, port, url, start } = server;
  return {
    url,
    port,
    get processId() {
      return body.processId;
    },
    kill: () => body.signal("SIGKILL"),
    freeze: () => body.signal("SIGSTOP"),
    thaw: () => body.signal("SIGCONT"),
    restart: async () => {
      await body.signal("SIGKILL");
      await start();
    },
    stop: () => body.discard(),
    [Symbol.asyncDispose]: () => body.discard(),
  };
}
