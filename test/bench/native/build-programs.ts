import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { aptInstall, findBinary, isExecutable } from "../../harness/find-binary.ts";

export interface Programs {
  readonly farEnd: string;
  readonly load: string;
}

const sources = import.meta.dirname;
const built = join(sources, "../../../node_modules/.cache/trunkline-bench");

/** This machine lacks what the bench needs; what it is says the message. */
export class CannotMeasure extends Error {}

/**
 * The two programs of the bench, compiled when their source is new. They are in C because what they cost is taken from
 * the two cores that everybody here shares: written for Node, they would be what is measured.
 */
export async function buildPrograms(say: (line: string) => void): Promise<Programs> {
  if (process.platform !== "linux")
    throw new CannotMeasure("The bench reads CPU times from /proc: it runs on Linux only.");
  const [farEnd, load] = await Promise.all([build("far-end", say), build("load", say)]);
  return { farEnd, load };
}

async function build(name: string, say: (line: string) => void): Promise<string> {
  const source = join(sources, `${name}.c`);
  const hash = createHash("sha256")
    .update(await readFile(source))
    .digest("hex")
    .slice(0, 16);
  const program = join(built, `${name}-${hash}`);
  if (await isExecutable(program)) return program;
  const compiler = await findCompiler(say);
  await mkdir(built, { recursive: true });
  const unfinished = `${program}.${process.pid}`;
  await promisify(execFile)(compiler, ["-O2", "-o", unfinished, source]);
  await rename(unfinished, program);
  return program;
}

let compilerSought: Promise<string> | undefined;

function findCompiler(say: (line: string) => void): Promise<string> {
  compilerSought ??= seekCompiler(say);
  return compilerSought;
}

async function seekCompiler(say: (line: string) => void): Promise<string> {
  const found = await installed();
  if (found !== undefined) return found;
  if (process.getuid?.() === 0 && (await findBinary("apt-get")) !== undefined) {
    say("Installing gcc by apt-get, once: the far end and the load generator are written in C.");
    await aptInstall(["gcc", "libc6-dev"]);
    const now = await installed();
    if (now !== undefined) return now;
  }
  throw new CannotMeasure("The bench needs a C compiler and found none: sudo apt-get install -y gcc libc6-dev");
}

async function installed(): Promise<string | undefined> {
  return (await findBinary("cc")) ?? (await findBinary("gcc")) ?? findBinary("clang");
}
