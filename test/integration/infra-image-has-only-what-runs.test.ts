import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { filledEnvironment, infraFolder, readCompose } from "../harness/infra/compose-file.ts";

const root = join(infraFolder, "..");
const linesOf = (path: string): string[] => readFileSync(join(root, path), "utf8").split("\n");
const dockerfile = linesOf("infra/Dockerfile").filter((line) => line !== "" && !line.startsWith("#"));
const packageFile = z.object({ version: z.string(), devDependencies: z.object({ node: z.string() }) });

test("nothing of the project enters the image but what runs, and that is there", () => {
  const rules = linesOf(".dockerignore").filter((line) => line !== "" && !line.startsWith("#"));
  const allowed = ["LICENSE", "package.json", "package-lock.json", "services", "shared", "infra/healthcheck.ts"];
  expect(rules).toEqual(["*", ...allowed.map((path) => `!${path}`)]);
  expect(allowed.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test("its process is Node itself, as a user without rights, and is checked", () => {
  expect(dockerfile).toContain('ENTRYPOINT ["node", "/app/services/cli/main.ts"]');
  expect(dockerfile).toContain('    CMD ["node", "infra/healthcheck.ts"]');
  expect(dockerfile.filter((line) => line.startsWith("USER "))).toEqual(["USER node"]);
});

test("it runs the Node that the project is developed with, has no development packages, and is called by its version", () => {
  const { version, devDependencies } = packageFile.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
  const bases = dockerfile.filter((line) => line.startsWith("FROM ")).map((line) => line.split(" ")[1]);
  const [base, ...others] = new Set(bases);
  expect(others).toEqual([]);
  expect(base).toMatch(new RegExp(`^node:${devDependencies.node}-slim@sha256:[0-9a-f]{64}$`));
  expect(dockerfile.find((line) => line.startsWith("RUN npm ci"))).toContain("--omit=dev");
  const ours = Object.values(readCompose(filledEnvironment()).services).filter(({ build }) => build !== undefined);
  expect(new Set(ours.map(({ image }) => image))).toEqual(new Set([`trunkline:${version}`]));
});
