import type { FoundServer } from "../found-servers.ts";
import { freePort } from "../free-port.ts";
import { startNatsServer } from "../nats-server.ts";
import type { OwnServer } from "../own-server.ts";

/** The least that a server takes; it closes one connection a second at most, so a few clients are gone long before. */
const lameDuck = ['lame_duck_duration: "30s"', 'lame_duck_grace_period: "1s"'];

/** Several NATS servers that are one broker to their clients. */
export class NatsCluster implements AsyncDisposable {
  readonly servers: readonly OwnServer[];

  private constructor(servers: readonly OwnServer[]) {
    this.servers = servers;
  }

  static async start(size: number, found?: FoundServer): Promise<NatsCluster> {
    const ports = await Promise.all(Array.from({ length: size }, () => freePort()));
    const routes = ports.map((port) => `"nats-route://127.0.0.1:${port}"`).join(", ");
    const servers = await Promise.all(
      ports.map((port) => {
        const cluster = `cluster { name: "trunkline-test", listen: "127.0.0.1:${port}", routes: [${routes}] }`;
        return startNatsServer({ extraConfig: [...lameDuck, cluster].join("\n"), ...(found && { found }) });
      }),
    );
    return new NatsCluster(servers);
  }

  /** All of them, as clients are told of them. */
  get url(): string {
    return this.servers.map(({ url }) => url).join(",");
  }

  /** As `nats-server --signal ldm` does: takes no more clients, and asks those that it has to go elsewhere, one by one. */
  retire(server: OwnServer): void {
    if (server.processId === undefined) throw new Error("a server in a container cannot be signalled");
    process.kill(server.processId, "SIGUSR2");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}
