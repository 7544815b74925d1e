import { request } from "node:http";
import { homedir } from "node:os";
import { join } from "node:path";

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
