import { createRequire } from "node:module";

/**
 * Run as `node musistudio-server.ts <entry of @musistudio/llms> <port> <port of the far end>`. The package is looked up
 * as late as this, since it is there only once somebody has run the bench; its build for ES modules does not load.
 */
const [entry = "", port, farEndPort] = process.argv.slice(2);

interface Body {
  model: string;
}

interface Llms {
  default: new (options: object) => {
    addHook(name: "preHandler", hook: (request: { body?: Body }, reply: unknown, done: () => void) => void): void;
    start(): Promise<void>;
  };
}

const { default: Server } = createRequire(import.meta.url)(entry) as Llms;

/** From one transformer to the same: it passes bodies on without another word, which is the cheapest that it can do. */
const farEnd = {
  name: "far-end",
  api_base_url: `http://127.0.0.1:${farEndPort}/v1/chat/completions`,
  api_key: "none",
  models: ["any"],
  transformer: { use: ["OpenAI"] },
};
const server = new Server({
  logger: false,
  useJsonFile: false,
  initialConfig: { HOST: "127.0.0.1", PORT: port, providers: [farEnd] },
});
// It wants the provider's name before the model's, and clients of the bench send the same to everybody.
server.addHook("preHandler", ({ body }, _, done) => {
  if (body !== undefined) body.model = `${farEnd.name},${body.model}`;
  done();
});
await server.start();
