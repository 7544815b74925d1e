import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startStagedVllm, type StagedVllm } from "../conformance/staged-vllm.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { Recorder } from "../harness/recorder.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { type CodingClient, pathsIn, type Place } from "./coding-clients.ts";
import { installClient } from "./install-client.ts";
import { followScript, type ScriptedStep } from "./scripted-model.ts";

const runTimeoutMs = 120_000;
export const contextTokens = 200_000;

/** Variables of this process that a client gets. All others could change what it does. */
const inherited = ["PATH", "LANG", "TERM"];

interface Parts {
  readonly client: CodingClient;
  readonly program: string;
  readonly staged: StagedVllm;
  readonly recorder: Recorder;
  readonly folder: string;
  readonly model: string;
}

/** A client with a home and a project of its own, before a recorder and a gateway whose model follows a script. */
export class ClientRun implements AsyncDisposable {
  /** The folder with the client's home and project. */
  readonly folder: string;
  readonly place: Place;
  readonly staged: StagedVllm;
  readonly recorder: Recorder;
  readonly #client: CodingClient;
  readonly #program: string;

  private constructor({ client, program, staged, recorder, folder, model }: Parts) {
    this.folder = folder;
    this.staged = staged;
    this.recorder = recorder;
    this.#client = client;
    this.#program = program;
    const { endpoint } = staged.up;
    const gateway = { origin: recorder.origin, key: endpoint.key, model, contextTokens };
    this.place = { ...gateway, home: join(folder, "home"), project: join(folder, "project") };
  }

  /** Prepares a client that asks for the model by its own name, or by one that leads to it by a route. */
  static async prepare(client: CodingClient, routed?: string): Promise<ClientRun> {
    const program = await installClient(client);
    const staged = await startStagedVllm({}, { maxModelLen: contextTokens });
    const recorder = await Recorder.before(staged.up.endpoint.baseUrl);
    const folder = await realpath(await mkdtemp(join(tmpdir(), "trunkline-client-")));
    if (routed !== undefined) await setRoute(routed, staged);
    const run = new ClientRun({ client, program, staged, recorder, folder, model: routed ?? staged.model });
    await mkdir(run.place.project);
    for (const [path, text] of Object.entries(client.settings(run.place).files ?? {})) {
      const file = join(run.place.home, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    return run;
  }

  /** Lets the model answer by these steps from now on. */
  follow(script: readonly ScriptedStep[]): void {
    this.staged.answers(followScript(script));
  }

  /** Gives the client a task, the first or a further one, and resolves when its process has ended. */
  async give(task: string, { goesOn = false }: { readonly goesOn?: boolean } = {}) {
    const { home, project } = this.place;
    const known = inherited.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
    const { env } = this.#client.settings(this.place);
    const environment = { ...(Object.fromEntries(known) as Record<string, string>), HOME: home, ...env };
    const args = this.#client.args(task, goesOn);
    await using child = await OwnedChild.start({ binary: this.#program, args, environment, cwd: project });
    const what = `${this.#client.name} to end`;
    await until(() => child.ended, { what, timeoutMs: runTimeoutMs, intervalMs: 50 }).catch(async (error: unknown) => {
      throw new Error(`${String(error)}; it says:\n${await child.stdout()}\n${await child.stderr()}`);
    });
    const [exitCode, stdout, stderr] = await Promise.all([child.exit(), child.stdout(), child.stderr()]);
    return { exitCode, stdout, stderr };
  }

  /** Requests so far that the gateway refused, and the warnings and errors that it logged. */
  async complaints(): Promise<object[]> {
    const refused = this.recorder.exchanges.filter(({ status }) => status !== 200);
    return [...refused, ...(await this.staged.up.logLines()).filter(({ level }) => level >= 40)];
  }

  /** The paths that the gateway ignored in the requests so far. */
  get ignored(): string[] {
    return pathsIn(
      this.recorder.exchanges.map(({ answerHeaders }) => String(answerHeaders["x-trunkline-ignored"] ?? "")),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.recorder[Symbol.asyncDispose]();
    await this.staged[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Makes a name stand for the model of a staged gateway. */
export async function setRoute(name: string, { up, model }: StagedVllm): Promise<void> {
  const { exitCode, stderr } = await trunkline(["routes", "set", name, model], { TRUNKLINE_STATE_DIR: up.stateDir });
  if (exitCode !== 0) throw new Error(`routes set ended with ${exitCode}: ${stderr}`);
  await until(async () => (await up.endpoint.models()).ids.includes(name), { what: `${name} to be listed` });
}
