/**
 * Does what a newcomer does with a package: starts it by npx in an empty folder, chats, lists keys, stops it. Any Node that
 * runs the package runs this file: it imports no package.
 *
 * usage: node test/harness/newcomer.ts ./trunkline-….tgz
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const startsWithinMs = 60_000;
const [tarball = ""] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "trunkline-newcomer-"));
copyFileSync(tarball, join(folder, basename(tarball)));
const npx = ["-y", `./${basename(tarball)}`];
const anyPorts = { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0", TRUNKLINE_RUNTIME: "scripted" };
const options = { cwd: folder, env: { ...process.env, ...anyPorts }, shell: process.platform === "win32" };

const startedAtMs = performance.now();
const up = spawn("npx", [...npx, "up", "--json"], { ...options, stdio: ["ignore", "pipe", "inherit"] });
try {
  const { base_url: baseUrl, api_key: key } = JSON.parse(await firstLine(up)) as Record<string, string>;
  const readyMs = performance.now() - startedAtMs;
  const answer = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "scripted",
      stream: true,
      messages: [{ role: "user", content: "/script tokens=20" }],
    }),
  });
  const text = await answer.text();
  if (answer.status !== 200 || !text.endsWith("data: [DONE]\n\n")) throw new Error(`${answer.status}: ${text}`);
  const keys = execFileSync("npx", [...npx, "keys", "list"], { ...options, encoding: "utf8" });
  if (!keys.includes("trunkline up")) throw new Error(`the key of \`up\` is not listed:\n${keys}`);
  console.log(
    `${process.platform}-${process.arch}, Node ${process.versions.node}: ready after ${Math.round(readyMs)} ms`,
  );
} finally {
  await stop(up);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

function firstLine({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no line within ${startsWithinMs} ms`)), startsWithinMs);
    let text = "";
    stdout?.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      if (!text.includes("\n")) return;
      clearTimeout(late);
      resolve(text.split("\n")[0] ?? "");
    });
    stdout?.once("end", () => reject(new Error("trunkline ended before it was ready")));
  });
}

/** Stops npx. Trunkline ends with it: by itself, but on Windows as a part of its tree. */
async function stop(child: ChildProcess): Promise<void> {
  if (process.platform === "win32")
    execFileSync("taskkill", ["/T", "/F", "/PID", String(child.pid)], { stdio: "ignore" });
  else child.kill();
  // The pipe ends when the last process that holds it has ended.
  if (child.stdout?.readableEnded === false) await new Promise((resolve) => child.stdout?.once("close", resolve));
}
