import type { ContainerRuntimeClient } from "testcontainers";
import type { ServerBody } from "./own-server.ts";
import { request } from "node:http";
import { homedir } from "node:os";
import { join } from "node:path";

type Container = ReturnType<ContainerRuntimeClient["container"]["getById"]>;

/** How to run an image: arguments and an entry point as Docker understands them. */
export interface ContainerRun {
  readonly image: string;
  readonly command: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** The port inside is the server's usual one; outside it is fixed, so that a restart comes back on the same. */
  readonly ports: { readonly inside: number; readonly outside: number };
}

const outputLinesMax = 20;

/**
 * A server in a container, whose data live as long as the container does. testcontainers finds the engine and removes
 * what a run that was killed left behind; its own way to start containers is not used, because it waits for those
 * that have failed. It is loaded only here, when an engine has answered.
 */
export class ServerContainer implements ServerBody {
  readonly processId = undefined;
  readonly #run: ContainerRun;
  #host = "127.0.0.1";
  #container: Container | undefined;

  constructor(run: ContainerRun) {
    this.#run = run;
  }

  get host(): string {
    return this.#host;
  }

  async launch(): Promise<void> {
    this.#container ??= await this.#create();
    await this.#container.start();
  }

  async ended(): Promise<boolean> {
    return this.#container === undefined || !(await this.#container.inspect()).State.Running;
  }

  async output(): Promise<string> {
    const log = await this.#container?.logs({ stdout: true, stderr: true, tail: outputLinesMax });
    return log?.toString("utf8").trim() ?? "";
  }

  async signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void> {
    const container = this.#container;
    if (container === undefined || (await this.ended())) return;
    const gone = name === "SIGKILL" ? container.wait() : undefined;
    await container.kill({ signal: name });
    await gone;
  }

  async discard(): Promise<void> {
    await this.#container?.remove({ force: true, v: true });
    this.#container = undefined;
  }

  async #create(): Promise<Container> {
    const { getContainerRuntimeClient, getReaper, ImageName, LABEL_TESTCONTAINERS_SESSION_ID } =
      await import("testcontainers");
    const client = await getContainerRuntimeClient();
    const { image, command, entrypoint, environment = {}, ports } = this.#run;
    await client.image.pull(ImageName.fromString(image));
    const { sessionId } = await getReaper(client);
    const { host } = client.info.containerRuntime;
    const local = host === "localhost" || host === "127.0.0.1";
    this.#host = local ? "127.0.0.1" : host;
    const portName = `${ports.inside}/tcp`;
    return client.container.create({
      Image: image,
      Cmd: [...command],
      ...(entrypoint === undefined ? {} : { Entrypoint: [...entrypoint] }),
      Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      Labels: { [LABEL_TESTCONTAINERS_SESSION_ID]: sessionId },
      // With a terminal the log comes as plain text.
      Tty: true,
      ExposedPorts: { [portName]: {} },
      HostConfig: {
        PortBindings: { [portName]: [{ HostIp: local ? "127.0.0.1" : "", HostPort: `${ports.outside}` }] },
      },
    });
  }
}

type Address = { socketPath: string } | { host: string; port: string };

const answerTimeoutMs = 2_000;

/**
 * Whether a container engine answers where testcontainers would look for it. A Docker client proves nothing, and
 * neither does a socket file: only an answer does.
 */
export async function dockerEngineAnswers(environment: NodeJS.ProcessEnv): Promise<boolean> {
  const answers = await Promise.all(addresses(environment).map(ping));
  return answers.includes(true);
}

function addresses(environment: NodeJS.ProcessEnv): Address[] {
  const named = environment["DOCKER_HOST"];
  if (named !== undefined && named !== "") return URL.canParse(named) ? addressOf(new URL(named)) : [];
  const runtimeFolder = environment["XDG_RUNTIME_DIR"] ?? `/run/user/${process.getuid?.() ?? 0}`;
  return [
    "/var/run/docker.sock",
    join(runtimeFolder, "docker.sock"),
    join(homedir(), ".docker/run/docker.sock"),
    join(homedir(), ".docker/desktop/docker.sock"),
  ].map((socketPath) => ({ socketPath }));
}

function addressOf(url: URL): Address[] {
  if (url.protocol === "unix:") return [{ socketPath: url.pathname }];
  if (url.protocol === "tcp:" || url.protocol === "http:") return [{ host: url.hostname, port: url.port || "2375" }];
  return [];
}

function ping(address: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ ...address, path: "/_ping", signal: AbortSignal.timeout(answerTimeoutMs) }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.on("error", () => resolve(false));
    asked.end();
  });
}
