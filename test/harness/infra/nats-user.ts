import {
  credsAuthenticator,
  jwtAuthenticator,
  PermissionViolationError,
  type NatsConnection,
} from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";

/** A user of the broker with the plain client library: what whoever stole its password could do. */
export class NatsUser implements AsyncDisposable {
  readonly #connection: NatsConnection;

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  static async connect(login: {
    url: string;
    user?: string;
    password?: string | undefined;
    /** The text of a `.creds` file, or a JWT and its key, for a server in operator mode. */
    creds?: string;
    jwt?: { readonly jwt: string; readonly key: { readonly seed: string } };
    caFile?: string;
  }): Promise<NatsUser> {
    const { url, user, password: pass, creds, jwt, caFile } = login;
    // The plain library holds the certificate of an address against the name localhost.
    const servers = caFile === undefined ? url : url.replace("127.0.0.1", "localhost");
    const who = { ...(user === undefined ? {} : { user }), ...(pass === undefined ? {} : { pass }) };
    const tls = caFile === undefined ? {} : { tls: { caFile } };
    const authenticator =
      creds === undefined
        ? jwt && jwtAuthenticator(jwt.jwt, Buffer.from(jwt.key.seed))
        : credsAuthenticator(Buffer.from(creds));
    return new NatsUser(
      await connect({ servers, ...who, ...(authenticator && { authenticator }), ...tls, reconnect: false }),
    );
  }

  get info(): NatsConnection["info"] {
    return this.#connection.info;
  }

  /** Goes on to hold all that a subscription is given, or that it was refused, which is known when this resolves. */
  async listen(pattern: string, queue?: string): Promise<readonly string[]> {
    const heard: string[] = [];
    this.#connection.subscribe(pattern, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        const refused = error instanceof PermissionViolationError && error.operation === "subscription";
        heard.push(refused ? "refused" : (error?.message ?? message.subject));
      },
    });
    await this.flush();
    return heard;
  }

  /** When this resolves it was sent on to whoever may hear it; after a flush of their own they have it. */
  async publish(...subjects: readonly string[]): Promise<void> {
    for (const subject of subjects) this.#connection.publish(subject, "content");
    await this.flush();
  }

  /** Resolves with the reason when the server has ended this connection. */
  async ended(): Promise<string> {
    return String(await this.#connection.closed());
  }

  flush(): Promise<void> {
    return this.#connection.flush();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#connection.close();
  }
}
