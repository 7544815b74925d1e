import { describe, expect, test } from "vitest";
import { findBrokenLinks } from "./find-broken-links.ts";
import { findBundled } from "./find-bundled.ts";
import { findCircles } from "./find-circles.ts";
import { findHiddenSubjects, findHiddenTitles, findViolations, importsOf } from "./find-violations.ts";
import { importRules } from "./import-rules.ts";
import { findLongFolders, linesOf } from "./line-budgets.ts";
import { findUnproved, readPromises, rowsPromised } from "./promises.ts";
import { readSources } from "./read-sources.ts";
import { findRepeatedTypes } from "./repeated-types.ts";

/** A file for each rule that breaks it, so that a rule that matches nothing any more is noticed. */
const planted: Readonly<Record<string, readonly [path: string, text: string]>> = {
  "shared imports no service": ["shared/protocol/x.ts", `import { a } from "../../services/agent/config.ts";`],
  "shared imports no test": ["shared/protocol/x.ts", `import { a } from "../../test/harness/until.ts";`],
  "records know no store": ["shared/records/x.ts", `import { a } from "../store/open-key-store.ts";`],
  "keys know neither records nor the store": ["shared/keys/x.ts", `import { a } from "../records/key-record.ts";`],
  "no service imports a test": ["services/agent/x.ts", `import { a } from "../../test/harness/until.ts";`],
  "the gateway does not import the agent": [
    "services/gateway/x.ts",
    `import type {\n  A,\n} from "../agent/jobs/schedule.ts";`,
  ],
  "the agent does not import the gateway": ["services/agent/x.ts", `export { a } from "../gateway/server.ts";`],
  "the fleet knows neither routing nor jobs": [
    "services/gateway/fleet/x.ts",
    `import type { OpenJobs } from "../jobs/open-jobs.ts";`,
  ],
  "http knows no other room of the gateway": [
    "services/gateway/http/x.ts",
    `import type { Caller } from "../keys/authenticate.ts";`,
  ],
  "keys know HTTP and no other room": ["services/gateway/keys/x.ts", `import { a } from "../fleet/roster.ts";`],
  "limits know no other room": ["services/gateway/limits/x.ts", `import { a } from "../jobs/open-jobs.ts";`],
  "images know HTTP and no other room": ["services/gateway/images/x.ts", `import { a } from "../jobs/open-jobs.ts";`],
  "routing knows the fleet and no other room": [
    "services/gateway/routing/x.ts",
    `import { a } from "../jobs/open-jobs.ts";`,
  ],
  "placing knows the fleet and no other room": [
    "services/gateway/placing/x.ts",
    `import { a } from "../jobs/open-jobs.ts";`,
  ],
  "people know keys, limits, the fleet and no other room": [
    "services/gateway/people/x.ts",
    `import { a } from "../requests/request.ts";`,
  ],
  "jobs know the fleet, routing and no other room": [
    "services/gateway/jobs/x.ts",
    `import { a } from "../limits/limits.ts";`,
  ],
  "the public API knows neither metrics, openapi, operations nor tunnels": [
    "services/gateway/requests/x.ts",
    `import { a } from "../metrics/request-meters.ts";`,
  ],
  "capture knows no API": ["services/gateway/capture/x.ts", `import { a } from "../apis/apis.ts";`],
  "requests know no API": ["services/gateway/requests/x.ts", `import { a } from "../chats/read-chat.ts";`],
  "chats know no API": ["services/gateway/chats/x.ts", `import { a } from "../apis/reads.ts";`],
  "the readers of requests know neither Fastify nor renderers": [
    "services/gateway/apis/chat/chat-request.ts",
    `import { a } from "./render-chat.ts";`,
  ],
  "only the two lists know the names of APIs": ["services/gateway/x.ts", `import { a } from "./apis/chat/api.ts";`],
  "metrics know neither the public API nor operations": [
    "services/gateway/metrics/x.ts",
    `import { a } from "../requests/request-account.ts";`,
  ],
  "openapi knows neither keys, the fleet, metrics nor operations": [
    "services/gateway/openapi/x.ts",
    `import { a } from "../fleet/roster.ts";`,
  ],
  "tunnels know HTTP, keys and the fleet, and no other room": [
    "services/gateway/tunnels/x.ts",
    `import { a } from "../jobs/open-jobs.ts";`,
  ],
  "runtimes know neither models, jobs nor the machine": [
    "services/agent/runtimes/ollama/x.ts",
    `import { a } from "../../jobs/run-job.ts";`,
  ],
  "models know neither jobs nor the machine": [
    "services/agent/models/x.ts",
    `import { a } from "../jobs/schedule.ts";`,
  ],
  "jobs do not know the machine": ["services/agent/jobs/x.ts", `import { a } from "../machine/announce.ts";`],
  "the machine does not know jobs": ["services/agent/machine/x.ts", `import { a } from "../jobs/schedule.ts";`],
  "the agent knows nothing of keys": ["services/agent/x.ts", `import { scope } from "#shared/records/key-record.ts";`],
  "no other room knows traces": [
    "services/gateway/requests/settle.ts",
    'import { openTraces } from "../traces/open-traces.ts";',
  ],
  "only traces know OpenTelemetry": ["services/gateway/server.ts", 'import { trace } from "@opentelemetry/api";'],
  "no other room knows members": ["services/gateway/operations/x.ts", `import { a } from "../members/b.ts";`],
  "the console knows no other service": [
    "services/console/pages/x.tsx",
    `import type { AdminParts } from "../../gateway/operations/serve-operation.ts";`,
  ],
  "records know no operation of the admin API": [
    "shared/records/x.ts",
    `import type { AdminSite } from "../admin/operation.ts";`,
  ],
  "commands open the store at one place": [
    "services/cli/commands/x.ts",
    `import { openKeyStore } from "#shared/store/open-key-store.ts";`,
  ],
  "no service imports the console": ["services/gateway/x.ts", `import { a } from "../console/quantity.ts";`],
  "only the console knows Preact": ["services/gateway/x.ts", `import { h } from "preact";`],
  "only sign-in by OpenID knows openid-client": ["services/gateway/x.ts", `import * as client from "openid-client";`],
  "only what packs knows rolldown": ["services/gateway/x.ts", `import { rolldown } from "rolldown";`],
  "no service imports the CLI": ["services/gateway/x.ts", `await import("../cli/up.ts");`],
  "the CLI enters a service only through the files at its top": [
    "services/cli/x.ts",
    `import { a } from "../gateway/fleet/roster.ts";`,
  ],
  "the terminal and the site know no command": ["services/cli/site/x.ts", `import { a } from "../commands/keys.ts";`],
  "the terminal does not know the site": ["services/cli/terminal/x.ts", `import { a } from "../site/find-gateway.ts";`],
  "only up stands above gateway and agent both": [
    "services/cli/gateway.ts",
    `import { startGateway } from "../gateway/compose.ts";`,
  ],
  "only the reading thread knows js-tiktoken": [
    "services/gateway/apis/completions/completion-request.ts",
    `import ranks from "js-tiktoken/ranks/cl100k_base";`,
  ],
  "only the reading thread has the table of OpenAI's tokens": [
    "services/gateway/apis/x.ts",
    `import { a } from "./reading-thread.ts";`,
  ],
  "only the two ends of a tunnel know ws": ["services/gateway/http/listen.ts", `import { WebSocketServer } from "ws";`],
  "only nats adapters know the libraries of NATS": [
    "shared/broker/broker.ts",
    `import type { Msg } from "@nats-io/nats-core";`,
  ],
  "only redis adapters know Redis": ["shared/keys/key-store.ts", `import { Redis } from "ioredis";`],
  "only the rooms that speak HTTP know Fastify": ["services/gateway/jobs/x.ts", `import { fastify } from "fastify";`],
  "only runtimes and WebSockets to NATS know undici": ["services/gateway/x.ts", `import { request } from "undici";`],
  "only the engine of GGUF files knows node-llama-cpp": [
    "services/agent/runtimes/llama/llama.ts",
    `const library = await import("node-llama-cpp");`,
  ],
  "only the exposition of metrics knows prom-client": [
    "services/gateway/operations/x.ts",
    `import { Registry } from "prom-client";`,
  ],
  "only the log knows pino": ["services/gateway/server.ts", `import { pino } from "pino";`],
  "only the reference's route knows swagger-ui-dist": [
    "services/gateway/requests/x.ts",
    `const path = import.meta.resolve("swagger-ui-dist/swagger-ui.css");`,
  ],
  "only the CLI knows commander": ["shared/process/x.ts", `import { Command } from "commander";`],
  "only connect knows jsonc-parser": ["services/cli/x.ts", 'import { parse } from "jsonc-parser";'],
  "only the architecture tests know scslre": ["shared/process/x.ts", `import { analyse } from "scslre";`],
  "only the harness knows testcontainers": ["test/unit/x.ts", `import("testcontainers")`],
  "the product knows no test tool": ["shared/protocol/x.ts", `import { test } from "vitest";`],
};

describe("dependencies run one way", () => {
  test("in every file of the project", () => {
    const sources = readSources();
    expect(sources.length).toBeGreaterThan(100);
    expect(findViolations(sources, importRules)).toEqual([]);
  });

  test.each(importRules)("a planted violation is found: $rule", ({ rule }) => {
    const [path, text] = planted[rule] ?? ["", ""];
    expect(findViolations([{ path, text }], importRules)).toEqual([expect.stringContaining(`: ${rule}. Instead, `)]);
  });

  test("a violation is printed with the rule and the place where the file or the import belongs", () => {
    const [job = "", text = ""] = planted["jobs know the fleet, routing and no other room"] ?? [];
    const log = { path: "services/cli/log.ts", text: 'import { pino } from "pino";' };
    expect(findViolations([{ path: job, text }, log], importRules)).toEqual([
      "services/gateway/jobs/x.ts imports services/gateway/limits/limits.ts: jobs know the fleet, routing and no other room. " +
        "Instead, declare the type or function that it needs in services/gateway/jobs, and let " +
        "services/gateway/compose.ts pass it in.",
      "services/cli/log.ts imports pino: only the log knows pino. " +
        "Instead, use what these files export, the only ones that may import it: shared/process/log.ts.",
    ]);
  });

  test("every place that a rule names exists", () => {
    const sources = readSources();
    const named = importRules.flatMap(({ instead = "" }) => instead.match(/\b(?:services|shared)\/[\w/.-]*\w/g) ?? []);
    expect(
      named.filter((place) => !sources.some(({ path }) => path === place || path.startsWith(`${place}/`))),
    ).toEqual([]);
  });

  test("a file whose name says nothing is found", () => {
    expect(findViolations([{ path: "shared/protocol/utils.ts", text: "" }], importRules)).toHaveLength(1);
  });

  test("imports are found however they are written", () => {
    const text = `import "a";\nimport b from "b";\nexport * from "c";\nconst d = await import("d");\nimport {\n  e,\n} from "./e.ts";`;
    expect(importsOf("shared/x/y.ts", text)).toEqual(["a", "b", "c", "d", "shared/x/e.ts"]);
  });
});

describe("the browser gets no schema library", () => {
  test("no file of the console's bundle imports zod, but for its types", () => {
    expect(findBundled(readSources(), "services/console/main.tsx", "zod")).toEqual([]);
  });

  test("a planted import of zod is found with the way to it, and an import of types is none", () => {
    const sources = [
      { path: "services/console/main.tsx", text: 'import { a } from "#shared/a.ts";\nimport type { z } from "zod";' },
      { path: "shared/a.ts", text: 'import type { c } from "./c.ts";\nimport { b } from "./b.ts";' },
      { path: "shared/b.ts", text: 'import { z } from "zod";' },
      { path: "shared/c.ts", text: 'import { z } from "zod";' },
    ];
    expect(findBundled(sources, "services/console/main.tsx", "zod")).toEqual([
      "services/console/main.tsx imports shared/a.ts imports shared/b.ts imports zod, which the bundle must not have.",
    ]);
  });
});

describe("a comment of the product begins with its subject", () => {
  test("in every file", () => {
    expect(findHiddenSubjects(readSources())).toEqual([]);
  });

  test.each([
    ["What is left of it.", "/** What is left of it. */"],
    ["Who asks", "  // Who asks is told."],
    ["Of a machine", "/**\n * Of a machine that is gone.\n */"],
  ])("a comment that begins with %s is found", (_, text) => {
    expect(findHiddenSubjects([{ path: "shared/protocol/x.ts", text }])).toHaveLength(1);
  });

  test.each([
    ["a line that goes on", "/**\n * A job knows\n * What it waits for.\n */"],
    ["a second line of a short comment", "// A job knows\n// What it waits for."],
    ["a test", "// What a test says"],
  ])("%s is no beginning", (kind, text) => {
    const path = kind === "a test" ? "test/unit/x.ts" : "shared/protocol/x.ts";
    expect(findHiddenSubjects([{ path, text }])).toEqual([]);
  });
});

describe("files import each other one way", () => {
  test("a circle is named by its files, and so is one of types alone", () => {
    const sources = [
      { path: "shared/protocol/a.ts", text: `import type { B } from "./b.ts";` },
      { path: "shared/protocol/b.ts", text: `export { c } from "../fleet/c.ts";` },
      { path: "shared/fleet/c.ts", text: `const a = await import("#shared/protocol/a.ts");` },
      { path: "shared/fleet/d.ts", text: `import { c } from "./c.ts";` },
    ];
    expect(findCircles(sources)).toEqual([
      expect.stringMatching(
        /^shared\/fleet\/c\.ts, shared\/protocol\/a\.ts, shared\/protocol\/b\.ts import each other/,
      ),
    ]);
  });
});

describe("the title of a test begins with its subject", () => {
  const titles = (text: string): string[] => findHiddenTitles([{ path: "test/unit/x.test.ts", text }]);

  test("a title that begins with another word is found", () => {
    const begins = ["test(", "test.each(rows)(", "describe.skipIf(lentOnly('nats'))("];
    expect(begins.flatMap((begin) => titles(`\n${begin}"what is refused", () => {});`))).toHaveLength(3);
    expect(
      titles('test("a job ends", () => {}); describe("a job", () => test("whose end is lost ends", () => {}));'),
    ).toEqual([]);
  });
});

describe("a folder stays within its line budget", () => {
  const sources = [
    { path: "services/gateway/server.ts", text: "a\n" },
    { path: "services/gateway/fleet/x.ts", text: "a\nb\n" },
    { path: "services/gateway/fleet/deep/y.ts", text: "c\n" },
    { path: "shared/broker/z.ts", text: "d\n" },
    { path: "test/unit/z.ts", text: "e\n" },
  ];

  test("lines are counted by room", () => {
    expect([...linesOf(sources)]).toEqual([
      ["services/gateway", 1],
      ["services/gateway/fleet", 3],
      ["shared/broker", 1],
    ]);
  });

  test("a folder over its budget is named with budget and lines, and so is one without a budget", () => {
    const budgets = { "services/gateway": 1, "services/gateway/fleet": 2 };
    expect(findLongFolders(sources, budgets)).toEqual([
      expect.stringContaining("services/gateway/fleet is over its line budget: 2, lines: 3."),
      expect.stringContaining("shared/broker has 1 lines and no line budget."),
    ]);
  });
});

describe("the name of a type means one type", () => {
  const declares = (path: string, text: string) => ({ path, text });

  test("every type that the project declares more than once has its reason", () => {
    expect(findRepeatedTypes(readSources())).toEqual([]);
  });

  test("a type that two files declare without a reason is found, and a reason without such a type", () => {
    const sources = [
      declares("services/agent/a.ts", "export interface Load {\n}\n"),
      declares("services/gateway/b.ts", "type Load = number;\ntype Step = 1;\n"),
      declares("test/unit/c.test.ts", "type Step = 2;\n"),
    ];
    expect(findRepeatedTypes(sources, { Step: "another step" })).toEqual([
      expect.stringMatching(/^services\/agent\/a\.ts, services\/gateway\/b\.ts each declare a type Load\./),
      "The type Step has one declaration at most: remove it from repeatedTypes.",
    ]);
    expect(findRepeatedTypes(sources, { Load: "a load of its own" })).toEqual([]);
  });
});

describe("each promise has tests that prove it", () => {
  const sources = [
    {
      path: "test/unit/x.test.ts",
      text: 'test("a key is kept", () => {});\n// test("a comment", () => {});\ntest.skip("a skipped one", () => {});\n',
    },
  ];
  const pages = [{ path: "README.md", text: "# A\n\n- no promise\n\n## Promises\n\n- A key\n  is kept for ever.\n" }];
  const found = (promises: string): string[] => findUnproved(sources, readPromises(promises), pages);

  test("the promises of the project are read from its list", () => {
    expect(readPromises().length).toBeGreaterThan(150);
    expect(findUnproved(readSources())).toEqual([]);
  });

  test("a promise that begins a bullet and names a test is proved", () => {
    expect(found("# README.md\n\nA key is kept\n  unit/x: a key is kept\n")).toEqual([]);
  });

  test.each([
    ["a promise without a test", "# List\nA lock\n", '"A lock" has no test'],
    ["a test that is not there", "# List\nA lock\n  unit/x: a lock\n", '"A lock" names "a lock" in test/unit/x'],
    ["a test in a file that is not there", "# List\nA lock\n  unit/y: a key is kept\n", "test/unit/y"],
    ["a test in a comment", "# List\nA lock\n  unit/x: a comment\n", "which is not there"],
    ["a skipped test", "# List\nA lock\n  unit/x: a skipped one\n", "which is not there"],
    [
      "a promise that its page lost",
      "# README.md\nA lock\n  unit/x: a key is kept\n",
      "no promise of README.md begins",
    ],
  ])("%s is found", (_, promises, violation) => {
    expect(found(`# README.md\nA key\n  unit/x: a key is kept\n${promises}`)).toEqual([
      expect.stringContaining(violation),
    ]);
  });

  test("a bullet of a page without a line in the list is found", () => {
    expect(found("")).toEqual([expect.stringContaining('README.md: "A key is kept for ever." has no line')]);
  });

  test("rows of a list are read from the beginning of its promises", () => {
    expect(rowsPromised("fault", readPromises("# Fault table\nfault 3, 17: a lock\ninput 4: a key\n"))).toEqual([
      3, 17,
    ]);
  });
});

test("a link to a page or a heading that is not there is found, and one to the web or a heading is not", () => {
  const text = "# One way\n[a](https://example.org) [b](#one-way) [c](docs/b.md#gone) [d](docs/none.md)\n";
  const pages = [
    { path: "README.md", text },
    { path: "docs/b.md", text: "# B\n[up](../README.md#one-way)\n" },
  ];
  const exists = (path: string): boolean => path !== "docs/none.md";
  expect(findBrokenLinks(pages, exists)).toEqual([
    "README.md: ](docs/b.md#gone) leads to a heading that docs/b.md does not have.",
    "README.md: ](docs/none.md) leads to docs/none.md, which is not there.",
  ]);
});
