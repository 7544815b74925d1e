import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { startNatsServer } from "./nats-server.ts";
import type { OwnServer } from "./own-server.ts";

/** A NATS server part of whose configuration may change while it runs, and that can be sent the signals it knows. */
export interface NatsOnFiles extends AsyncDisposable {
  readonly server: OwnServer;
  /** Puts this in the place of the changeable part, and has the server read it. */
  reload(changeable: string): Promise<void>;
  /** Lame duck mode: it takes nobody new, has its clients leave, and ends. */
  lameDuck(): Promise<void>;
}

/** Only where the server is a process of this host: see `foundServers`. */
export async function startNatsOnFiles(config: {
  readonly fixed?: string;
  readonly changeable?: string;
}): Promise<NatsOnFiles> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-nats-files-"));
  const [part, processFile] = [join(folder, "part.conf"), join(folder, "nats.pid")];
  await writeFile(part, config.changeable ?? "");
  // The server reads an included file from beside its own configuration, whose folder is a neighbour of this one.
  const lines = [`pid_file: "${processFile}"`, `include "../${basename(folder)}/part.conf"`, config.fixed ?? ""];
  const server = await startNatsServer({ extraConfig: lines.join("\n") });
  const signal = async (name: "SIGHUP" | "SIGUSR2"): Promise<void> => {
    process.kill(Number(await readFile(processFile, "utf8")), name);
  };
  return {
    server,
    reload: async (changeable) => {
      await writeFile(part, changeable);
      await signal("SIGHUP");
    },
    lameDuck: () => signal("SIGUSR2"),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
