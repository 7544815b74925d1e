import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { startUp } from "../harness/start-trunkline.ts";
import { spreadOf } from "./over-rounds.ts";

/** The time of a command of the checkout in ms, and over `node -e 0` in the same round: medians. */
export interface CommandTime {
  readonly line: string;
  readonly ms: number;
  readonly overNode: number;
}

/** The command lines, each with the most that it takes over `node -e 0`. */
export const commandGoals: Readonly<Record<string, number>> = {
  "trunkline --help": 4.5,
  "trunkline models": 9,
  "trunkline completion bash =mo": 3,
};

/** Runs each command with a site, as README writes it: with the folder of `trunkline` on the PATH. */
export async function measureCommands(rounds: number, say: (line: string) => void): Promise<readonly CommandTime[]> {
  await using up = await startUp();
  const bin = join(import.meta.dirname, "../../node_modules/.bin");
  const env = { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, TRUNKLINE_STATE_DIR: up.stateDir };
  const timeOf = (line: string): number => {
    const [command = "", ...args] = line.split(" ");
    const beganMs = performance.now();
    const { status, stderr } = spawnSync(command, args, { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`${line}: ${stderr}`);
    return performance.now() - beganMs;
  };
  const lines = Object.keys(commandGoals);
  say("commands");
  // The first run fills the compile cache.
  for (const line of lines) timeOf(line);
  const measured = Array.from({ length: rounds }, () => ({
    node: timeOf("node -e 0"),
    ms: new Map(lines.map((line) => [line, timeOf(line)])),
  }));
  return lines.map((line) => {
    const of = (figure: (round: (typeof measured)[number], ms: number) => number): number =>
      spreadOf(measured.map((round) => figure(round, round.ms.get(line) ?? NaN))).median;
    return { line, ms: of((_, ms) => ms), overNode: of(({ node }, ms) => ms / node) };
  });
}
