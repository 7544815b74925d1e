import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { agentConfig } from "../../services/agent/config.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
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

describe.each([
  ["agent", agentConfig],
  ["gateway", gatewayConfig],
])("the unit of the %s", (kind, read) => {
  const lines = linesOf(`infra/systemd/trunkline-${kind}.service`);
  const values = (name: string): string[] =>
    lines.filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1));
  const credentials = values("LoadCredential").map((value) => value.split(":")[0] ?? "");

  test(`the unit of the ${kind} gives it its secrets as credentials that it knows, and none in its environment`, () => {
    const secrets = credentials.filter((name) => name.startsWith("TRUNKLINE_"));
    expect(secrets).toContain("TRUNKLINE_NATS_URL");
    for (const name of secrets) {
      expect(() => read({ [`${name}_FILE`]: "/nowhere" })).toThrow(`${name}_FILE must be a file`);
    }
    expect(values("Environment").join(" ")).not.toMatch(/PASSWORD|PEPPER|_URL/);
  });

  test(`the unit of the ${kind} names the authority of NATS among its credentials`, () => {
    expect(values("Environment")).toContain("TRUNKLINE_NATS_CA=%d/nats-ca.pem");
    expect(credentials).toContain("nats-ca.pem");
  });

  test(`the unit of the ${kind} bounds its memory`, () => {
    expect(values("MemoryMax")).toEqual(["2G"]);
  });
});
