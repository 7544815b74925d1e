/**
 * Who may import what. Each rule is one negative sentence with the nearest legal place: `only` names the files that it
 * does not bind, `instead` says where the file or the import belongs. Patterns are paths from the project's root, in which
 * `*` stands for anything within one name and `**` for anything at all.
 */
export type ImportRule = {
  readonly rule: string;
  /** The files that the rule binds. */
  readonly files: string;
  /** What they must not import: files by path, or a vendor's package by its name. */
  readonly never: string;
} & (
  | { readonly only: readonly string[]; readonly instead?: never }
  | { readonly instead: string; readonly only?: never }
);

const testsBelongToTest = "move a file that tests to test/, and code that the product needs out of test/";
const agreementsBelongToShared =
  "move what both agree on to shared: messages and models to shared/protocol, failures to shared/fault";

/** Returns the remedy for a room of the gateway that needs another room's work. */
const declaredIn = (room: string): string =>
  `declare the type or function that it needs in services/gateway/${room}, and let services/gateway/compose.ts pass it in`;

export const importRules: readonly ImportRule[] = [
  {
    rule: "shared imports no service",
    files: "shared/**",
    never: "services/**",
    instead: "move the code that both need to shared, or let the service pass it in",
  },
  {
    rule: "records know no store",
    files: "shared/records/**",
    never: "shared/store/**",
    instead: "declare the port in shared/records, as key-store.ts does, and implement it in shared/store",
  },
  {
    rule: "keys know neither records nor the store",
    files: "shared/keys/**",
    never: "shared/{records,store}/**",
    instead: "move what reads a record to shared/records: shared/keys has the token and the pepper alone",
  },
  { rule: "shared imports no test", files: "shared/**", never: "test/**", instead: testsBelongToTest },
  { rule: "no service imports a test", files: "services/**", never: "test/**", instead: testsBelongToTest },
  {
    rule: "the gateway does not import the agent",
    files: "services/gateway/**",
    never: "services/agent/**",
    instead: agreementsBelongToShared,
  },
  {
    rule: "the agent does not import the gateway",
    files: "services/agent/**",
    never: "services/gateway/**",
    instead: agreementsBelongToShared,
  },
  {
    rule: "the fleet knows neither routing nor jobs",
    files: "services/gateway/fleet/**",
    never: "services/gateway/{routing,placing,jobs,apis,chats,requests,operations,openapi,tunnels}/**",
    instead: "move the file to services/gateway/jobs, or the type that both need to services/gateway/fleet",
  },
  {
    rule: "routing knows the fleet and no other room",
    files: "services/gateway/routing/**",
    never: "services/gateway/{http,keys,limits,images,jobs,metrics,apis,chats,requests,openapi,operations,tunnels}/**",
    instead: declaredIn("routing"),
  },
  {
    rule: "placing knows the fleet and no other room",
    files: "services/gateway/placing/**",
    never:
      "services/gateway/{http,keys,limits,images,routing,jobs,metrics,apis,chats,requests,openapi,operations,tunnels}/**",
    instead: declaredIn("placing"),
  },
  {
    rule: "people know keys, limits, the fleet and no other room",
    files: "services/gateway/people/**",
    never:
      "services/gateway/{http,images,routing,placing,jobs,metrics,apis,chats,requests,openapi,operations,members,tunnels}/**",
    instead: declaredIn("people"),
  },
  {
    rule: "http knows no other room of the gateway",
    files: "services/gateway/http/**",
    never:
      "services/gateway/{keys,limits,fleet,routing,jobs,metrics,apis,chats,requests,openapi,operations,tunnels}/**",
    instead: declaredIn("http"),
  },
  {
    rule: "keys know HTTP and no other room",
    files: "services/gateway/keys/**",
    never: "services/gateway/{limits,fleet,routing,jobs,metrics,apis,chats,requests,openapi,operations,tunnels}/**",
    instead: declaredIn("keys"),
  },
  {
    rule: "limits know no other room",
    files: "services/gateway/limits/**",
    never: "services/gateway/{http,keys,fleet,routing,jobs,metrics,apis,chats,requests,openapi,operations,tunnels}/**",
    instead: declaredIn("limits"),
  },
  {
    rule: "images know HTTP and no other room",
    files: "services/gateway/images/**",
    never:
      "services/gateway/{keys,limits,fleet,routing,jobs,metrics,apis,chats,requests,openapi,operations,tunnels}/**",
    instead: declaredIn("images"),
  },
  {
    rule: "jobs know the fleet, routing and no other room",
    files: "services/gateway/jobs/**",
    never: "services/gateway/{http,keys,limits,metrics,apis,chats,requests,openapi,operations,tunnels}/**",
    instead: declaredIn("jobs"),
  },
  {
    rule: "the public API knows neither metrics, openapi, operations nor tunnels",
    files: "services/gateway/{apis,chats,requests}/**",
    never: "services/gateway/{metrics,openapi,operations,tunnels}/**",
    instead: declaredIn("requests"),
  },
  {
    rule: "requests know no API",
    files: "services/gateway/requests/**",
    never: "services/gateway/{apis,chats}/**",
    instead:
      "declare it as a field of Endpoint in services/gateway/requests/endpoint.ts, and set it in the API's api.ts",
  },
  {
    rule: "capture knows no API",
    files: "services/gateway/capture/**",
    never: "services/gateway/{apis,chats,metrics,openapi,operations,members,tunnels}/**",
    instead: declaredIn("capture"),
  },
  {
    rule: "chats know no API",
    files: "services/gateway/chats/**",
    never: "services/gateway/apis/**",
    instead: "move what several APIs of chats share to services/gateway/chats",
  },
  {
    rule: "the readers of requests know neither Fastify nor renderers",
    files: "services/gateway/apis/*/*-{request,schema}.ts",
    never: "{fastify,services/gateway/{apis/*,chats}/{api,render-*}.ts}",
    instead: "move it to the API's api.ts, since reading threads load what a reader imports",
  },
  {
    rule: "only the two lists know the names of APIs",
    files: "services/**",
    never: "services/gateway/apis/*/api.ts",
    only: ["services/gateway/apis/apis.ts"],
  },
  {
    rule: "metrics know neither the public API nor operations",
    files: "services/gateway/metrics/**",
    never: "services/gateway/{apis,chats,requests,openapi,operations}/**",
    instead: "declare the meter as a type in the room that counts, and implement it in services/gateway/metrics",
  },
  {
    rule: "openapi knows neither keys, the fleet, metrics nor operations",
    files: "services/gateway/openapi/**",
    never: "services/gateway/{keys,fleet,routing,metrics,operations}/**",
    instead:
      "describe only shapes and limits that services/gateway/apis, chats, requests, http, jobs or shared export; move the constant there",
  },
  {
    rule: "tunnels know HTTP, keys and the fleet, and no other room",
    files: "services/gateway/tunnels/**",
    never: "services/gateway/{limits,routing,jobs,metrics,apis,chats,requests,openapi,operations}/**",
    instead: declaredIn("tunnels"),
  },
  {
    rule: "no other room knows members",
    files: "services/gateway/*/**",
    never: "services/gateway/members/**",
    only: ["services/gateway/members/**"],
  },
  {
    rule: "no other room knows traces",
    files: "services/gateway/*/**",
    never: "services/gateway/traces/**",
    only: ["services/gateway/traces/**"],
  },
  {
    rule: "only traces know OpenTelemetry",
    files: "**",
    never: "@opentelemetry/**",
    only: ["services/gateway/traces/**", "test/**"],
  },
  {
    rule: "runtimes know neither models, jobs nor the machine",
    files: "services/agent/runtimes/**",
    never: "services/agent/{models,jobs,machine}/**",
    instead: "extend the port services/agent/runtimes/runtime.ts, which models and jobs call",
  },
  {
    rule: "models know neither jobs nor the machine",
    files: "services/agent/models/**",
    never: "services/agent/{jobs,machine}/**",
    instead: "declare what it needs in services/agent/models, and let services/agent/compose.ts pass it in",
  },
  {
    rule: "jobs do not know the machine",
    files: "services/agent/jobs/**",
    never: "services/agent/machine/**",
    instead: "declare what it needs in services/agent/jobs, and let services/agent/compose.ts pass it in",
  },
  {
    rule: "the machine does not know jobs",
    files: "services/agent/machine/**",
    never: "services/agent/jobs/**",
    instead: "declare what it needs in services/agent/machine, and let services/agent/compose.ts pass it in",
  },
  {
    rule: "the agent knows nothing of keys",
    files: "services/agent/**",
    never: "shared/{keys,records,store}/**",
    instead: "put the fact into the head of the job, shared/protocol/job.ts, or code without keys into shared/process",
  },
  {
    rule: "the console knows no other service",
    files: "services/console/**",
    never: "services/{agent,cli,gateway}/**",
    instead: "ask the admin API with the calls of shared/admin/admin-call.ts, whose types are those of its operations",
  },
  {
    rule: "records know no operation of the admin API",
    files: "shared/{fleet,keys,protocol,records,requests,store,usage}/**",
    never: "shared/admin/{admin-*,*operation*}.ts",
    instead:
      "move what both need to the record; operations stand above records, and only shared/admin/key-terms.ts below",
  },
  {
    rule: "commands open the store at one place",
    files: "services/cli/**",
    never: "shared/store/open-key-store.ts",
    only: ["services/cli/site/*.ts", "services/cli/commands/run-up.ts", "services/cli/doctor/site-checks.ts"],
  },
  {
    rule: "no service imports the console",
    files: "services/{agent,cli,gateway}/**",
    never: "services/console/**",
    instead: "move the code that both need to shared",
  },
  {
    rule: "only the console knows Preact",
    files: "**",
    never: "{preact,preact/**,@preact/**}",
    only: ["services/console/**"],
  },
  {
    rule: "only sign-in by OpenID knows openid-client",
    files: "**",
    never: "openid-client",
    only: ["services/gateway/operations/open-id.ts"],
  },
  {
    rule: "only what packs knows rolldown",
    files: "**",
    never: "rolldown",
    only: ["services/console/bundle-console.ts", "infra/**", "test/**"],
  },
  {
    rule: "no service imports the CLI",
    files: "services/{gateway,agent}/**",
    never: "services/cli/**",
    instead: "move the code that both need to shared",
  },
  {
    rule: "the CLI enters a service only through the files at its top",
    files: "services/cli/**",
    never: "services/{gateway,agent}/*/**",
    instead: "export it from a file at the top of the service, such as compose.ts, or move it to shared",
  },
  {
    rule: "the terminal and the site know no command",
    files: "services/cli/{terminal,site}/**",
    never: "services/cli/{commands,connect,doctor,service}/**",
    instead: "declare what it needs in its own folder, and let the command pass it in",
  },
  {
    rule: "the terminal does not know the site",
    files: "services/cli/terminal/**",
    never: "services/cli/site/**",
    instead: "move what reads from a site to services/cli/site",
  },
  {
    rule: "only up stands above gateway and agent both",
    files: "services/cli/**",
    never: "services/{gateway,agent}/compose.ts",
    only: ["services/cli/commands/run-up.ts"],
  },
  {
    rule: "only nats adapters know the libraries of NATS",
    files: "**",
    never: "@nats-io/**",
    only: ["shared/{broker,site}/nats-*", "test/**"],
  },
  {
    rule: "only the two ends of a tunnel know ws",
    files: "**",
    never: "ws",
    only: ["services/gateway/tunnels/accept-tunnels.ts", "shared/site/nats-tunnel.ts", "test/**"],
  },
  {
    rule: "only the reading thread knows js-tiktoken",
    files: "**",
    never: "js-tiktoken{,/**}",
    only: ["services/gateway/apis/reading-thread.ts", "test/**"],
  },
  {
    rule: "only the reading thread has the table of OpenAI's tokens",
    files: "services/**",
    never: "services/gateway/apis/reading-thread.ts",
    instead: "send it the request through `RequestReader` of services/gateway/requests/read-request.ts",
  },
  { rule: "only redis adapters know Redis", files: "**", never: "ioredis", only: ["**/redis-*", "test/**"] },
  {
    rule: "only the rooms that speak HTTP know Fastify",
    files: "**",
    never: "fastify",
    only: [
      "services/gateway/*.ts",
      "services/gateway/{http,keys,apis,requests,capture,operations,members,openapi,tunnels}/**",
      "test/**",
    ],
  },
  {
    rule: "only runtimes and WebSockets to NATS know undici",
    files: "**",
    never: "undici",
    only: ["services/agent/runtimes/**", "shared/broker/nats-security.ts", "test/**"],
  },
  {
    rule: "only the engine of GGUF files knows node-llama-cpp",
    files: "**",
    never: "{node-llama-cpp,node-llama-cpp/**,@node-llama-cpp/**,**/node-llama-cpp/**}",
    only: ["services/agent/runtimes/llama/gguf-engine.ts", "test/**"],
  },
  {
    rule: "only the exposition of metrics knows prom-client",
    files: "**",
    never: "prom-client",
    only: ["services/gateway/metrics/exposition.ts"],
  },
  {
    rule: "only the log knows pino",
    files: "**",
    never: "pino",
    only: ["shared/process/log.ts"],
  },
  {
    rule: "only the reference's route knows swagger-ui-dist",
    files: "**",
    never: "swagger-ui-dist{,/**}",
    only: ["services/gateway/openapi/get-reference.ts", "test/**"],
  },
  { rule: "only the CLI knows commander", files: "**", never: "commander", only: ["services/cli/**", "test/**"] },
  {
    rule: "only connect knows jsonc-parser",
    files: "**",
    never: "jsonc-parser",
    only: ["services/cli/connect/edit-json.ts"],
  },
  { rule: "only the architecture tests know scslre", files: "**", never: "scslre", only: ["test/architecture/**"] },
  { rule: "only the harness knows testcontainers", files: "**", never: "testcontainers", only: ["test/harness/**"] },
  {
    rule: "the product knows no test tool",
    files: "{services,shared}/**",
    never: "{vitest,fast-check,openai}",
    instead: "move the file to test/",
  },
];

/**
 * The most lines of TypeScript that a folder may have, with all folders in it. `npm run check` fails above. After a folder
 * got shorter, `npm run budgets` lowers all budgets to today's lines and 5 % (`npm run budgets -- 0` for 0 %).
 */
export const lineBudgets: Readonly<Record<string, number>> = {
  "services/agent": 560,
  "services/agent/jobs": 2_490,
  "services/agent/machine": 480,
  "services/agent/models": 2_140,
  "services/agent/runtimes": 7_980,
  "services/cli": 190,
  "services/cli/commands": 4_660,
  "services/cli/connect": 1_400,
  "services/cli/doctor": 1_070,
  "services/cli/service": 1_080,
  "services/cli/site": 1_000,
  "services/cli/terminal": 730,
  "services/console": 3_610,
  "services/console/members": 560,
  "services/console/pages": 4_970,
  "services/gateway": 2_030,
  "services/gateway/alerts": 750,
  "services/gateway/apis": 7_030,
  "services/gateway/capture": 230,
  "services/gateway/chats": 990,
  "services/gateway/fleet": 1_330,
  "services/gateway/http": 2_650,
  "services/gateway/images": 250,
  "services/gateway/jobs": 3_360,
  "services/gateway/keys": 850,
  "services/gateway/limits": 3_140,
  "services/gateway/members": 520,
  "services/gateway/metrics": 740,
  "services/gateway/openapi": 560,
  "services/gateway/operations": 2_370,
  "services/gateway/people": 380,
  "services/gateway/placing": 270,
  "services/gateway/requests": 4_180,
  "services/gateway/routing": 2_800,
  "services/gateway/traces": 370,
  "services/gateway/tunnels": 1_510,
  "shared/admin": 2_820,
  "shared/alerts": 140,
  "shared/broker": 1_480,
  "shared/fault": 270,
  "shared/fleet": 340,
  "shared/history": 520,
  "shared/keys": 410,
  "shared/money": 70,
  "shared/placing": 140,
  "shared/prices": 130,
  "shared/process": 1_530,
  "shared/protocol": 2_170,
  "shared/records": 3_720,
  "shared/requests": 680,
  "shared/site": 590,
  "shared/store": 2_510,
  "shared/usage": 540,
};
