import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { filledEnvironment, infraFolder, readCompose } from "../harness/infra/compose-file.ts";

const root = join(infraFolder, "..");
const linesOf = (path: string): string[] => readFileSync(join(root, path), "utf8").split("\n");
const dockerfile = linesOf("infra/Dockerfile").filter((line) => line !== "" && !line.startsWith("#"));
const packageFile = z.object({ version: z.string(), devDependencies: z.object({ node: z.string() }) });

test("nothing enters the build of the image but what the package is made of, and all of that is there", () => {
  const rules = linesOf(".dockerignore").filter((line) => line !== "" && !line.startsWith("#"));
  const packed = ["LICENSE", "README.md", "package.json", "package-lock.json", "services", "shared"];
  const allowed = [...packed, "infra/healthcheck.ts", "infra/package"];
  expect(rules).toEqual(["*", ...allowed.map((path) => `!${path}`)]);
  expect(allowed.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test("the image holds the package only, and its process is Node itself, as a user without rights, and is checked", () => {
  const last = dockerfile.slice(dockerfile.findLastIndex((line) => line.startsWith("FROM ")));
  expect(last.filter((line) => /^(?:COPY|ADD) /.test(line))).toEqual([
    "COPY --from=package /package/lib/node_modules/trunkline /app",
  ]);
  expect(last).toContain('ENTRYPOINT ["node", "/app/dist/main.js"]');
  expect(last.find((line) => line.startsWith("HEALTHCHECK "))).toMatch(
    / CMD \["node", "\/app\/dist\/healthcheck.js"\]$/,
  );
  expect(last.filter((line) => line.startsWith("USER "))).toEqual(["USER node"]);
});

test("the image runs the Node that the project is developed with, and is called by its version", () => {
  const { version, devDependencies } = packageFile.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
  const [base] = dockerfile.flatMap((line) => /^ARG NODE_IMAGE=(.*)$/.exec(line)?.[1] ?? []);
  expect(base).toMatch(new RegExp(`^node:${devDependencies.node}-slim@sha256:[0-9a-f]{64}$`));
  const stages = dockerfile.filter((line) => line.startsWith("FROM "));
  expect(stages).toEqual(["FROM ${NODE_IMAGE} AS package", "FROM ${NODE_IMAGE}"]);
  const ours = Object.values(readCompose(filledEnvironment()).services).filter(({ build }) => build !== undefined);
  expect(new Set(ours.map(({ image }) => image))).toEqual(new Set([`trunkline:${version}`]));
});
