import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import packageJson from "../../package.json" with { type: "json" };
import { executableNode } from "../../infra/package/fetch-node.ts";

const root = join(import.meta.dirname, "../..");
const step = z.object({ uses: z.string().optional(), run: z.string().optional() });
const job = z.object({
  uses: z.string().optional(),
  needs: z.union([z.string(), z.array(z.string())]).optional(),
  permissions: z.record(z.string(), z.string()).optional(),
  steps: z.array(step).default([]),
});
const workflow = z.object({
  on: z.record(z.string(), z.unknown()),
  permissions: z.record(z.string(), z.string()),
  jobs: z.record(z.string(), job),
});

const files = globSync(".github/workflows/*.yml", { cwd: root });
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

describe.each(files)("%s", (file) => {
  const { jobs, permissions } = workflow.parse(parse(textOf(file)));
  const steps = Object.values(jobs).flatMap((each) => each.steps);
  const commands = steps.flatMap(({ run }) => run ?? []).join("\n");

  test("names each action by its commit", () => {
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
  });

  test("runs only scripts that are there", () => {
    const scripts = [...commands.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name = ""]) => name);
    expect(scripts.filter((name) => !(name in packageJson.scripts))).toEqual([]);
    const paths = [...commands.matchAll(/(?:node|vitest run) ((?:infra|test)\/[\w./-]+)/g)].map(
      ([, path = ""]) => path,
    );
    expect(paths.filter((path) => globSync(`${path}*`, { cwd: root }).length === 0)).toEqual([]);
  });

  test("has jobs that wait for jobs of its own, and may only read unless a job asks for more", () => {
    const needed = Object.values(jobs).flatMap(({ needs = [] }) => needs);
    expect(needed.filter((name) => !(name in jobs))).toEqual([]);
    expect(permissions).toEqual({ contents: "read" });
    for (const { uses } of Object.values(jobs)) if (uses !== undefined) expect(existsSync(join(root, uses))).toBe(true);
  });
});

test("a release waits for all checks, and its executables hold the Node that they do elsewhere", () => {
  const { jobs } = workflow.parse(parse(textOf(".github/workflows/release.yml")));
  for (const [name, { needs }] of Object.entries(jobs)) {
    if (name === "checks") continue;
    expect([name, name === "publish" ? needs : [needs]]).toEqual([
      name,
      name === "publish" ? ["package", "executables", "image"] : ["checks"],
    ]);
  }
  expect(textOf(".github/workflows/release.yml")).toContain(`node-version: ${executableNode}\n`);
});
