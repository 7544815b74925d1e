import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { LlamaServer, llamaServerProps } from "./llama-server.ts";
import { lmStudioModels, lmStudioModelsBefore, LmStudioServer } from "./lm-studio.ts";
import { openMlxLm } from "./mlx-lm.ts";
import { openAiCompatible } from "./openai-compatible.ts";
import { ModelLoading, refusalFault } from "./openai-fault.ts";
import { openAiModelList, type ListedModel } from "./openai-models.ts";
import type { OpenAiServer, OpenAiServerKind, OpenAiServerOptions } from "./openai-profile.ts";
import { openOtherServer } from "./other-server.ts";
import { RuntimeConnection } from "../runtime-connection.ts";
import type { Runtime, RuntimeSite } from "../runtime.ts";
import { openVllm } from "./vllm.ts";

export const openAiServerUrls: Readonly<Record<Exclude<OpenAiServerKind, "openai">, string>> = {
  vllm: "http://127.0.0.1:8000",
  "llama-server": "http://127.0.0.1:8080",
  "lm-studio": "http://127.0.0.1:1234",
  "mlx-lm": "http://127.0.0.1:8080",
};

interface RecogniseOptions {
  /** The kind that the operator configured. The server then only has to answer with a list of models. */
  readonly wanted?: OpenAiServerKind | undefined;
  /** True if a server of an unknown kind is accepted. */
  readonly allowOther?: boolean;
  readonly signal: AbortSignal;
  /** The Hugging Face cache on this host; in the user's own folder by default. */
  readonly hubFolder?: string;
  /** The platform of this host by default. */
  readonly platform?: string;
}

/**
 * Recognises the server at a site by its answers. Returns undefined when another service answers there, or none.
 *
 * Any service may listen there, Trunkline's own gateway included. Paths under `/v1` are requested only after another
 * path shows a model server, unless the operator named the place.
 */
export async function recogniseOpenAiServer(
  site: RuntimeSite,
  options: RecogniseOptions,
): Promise<Runtime | undefined> {
  const connection = new RuntimeConnection({ ...site, faultOf: refusalFault });
  let kept = false;
  try {
    const kind = await kindOf(connection, options);
    if (kind === undefined) return undefined;
    kept = true;
    const { hubFolder = join(homedir(), ".cache", "huggingface", "hub"), platform = process.platform } = options;
    const server = servers[kind]({ connection, clock: site.clock, hubFolder, platform });
    return openAiCompatible({ site, connection, server });
  } finally {
    if (!kept) await connection.close();
  }
}

async function kindOf(connection: RuntimeConnection, options: RecogniseOptions): Promise<OpenAiServerKind | undefined> {
  const { wanted, allowOther = false, signal } = options;
  if (wanted !== undefined) {
    if ((await listed(connection, signal)) !== undefined) return wanted;
    // whisper.cpp's server has no list of models.
    return wanted === "openai" && (await isHealthy(connection, signal)) ? wanted : undefined;
  }
  const evidence = await ownEvidence(connection, signal);
  if (evidence === "ollama") return undefined;
  if (evidence === "llama-server" || evidence === "lm-studio") return evidence;
  if (evidence === undefined && !allowOther) return undefined;
  const models = await listed(connection, signal);
  if (models === undefined) return undefined;
  return kindByList(models, evidence) ?? (allowOther ? "openai" : undefined);
}

const health = z.object({ status: z.literal("ok") });

async function isHealthy(connection: RuntimeConnection, signal: AbortSignal): Promise<boolean> {
  const answer = await connection.ask(health, { path: "/health", signal }).catch(() => undefined);
  signal.throwIfAborted();
  return answer !== undefined;
}

/**
 * Identifies the server by its own interfaces. Requests all of them at once, since each may be slow to report that it
 * does not exist.
 */
async function ownEvidence(
  connection: RuntimeConnection,
  signal: AbortSignal,
): Promise<OpenAiServerKind | "ollama" | undefined> {
  const describesServer = (props: z.infer<typeof llamaServerProps>): boolean =>
    Boolean(props.default_generation_settings ?? props.total_slots ?? props.role);
  const answers = async (path: string, schema: z.ZodType): Promise<boolean> => {
    try {
      await connection.ask(schema, { path, signal });
      return true;
    } catch (error) {
      signal.throwIfAborted();
      // Only llama-server reports that it is loading, and it does so on every path.
      return path === "/props" && error instanceof ModelLoading;
    }
  };
  const [isOllama, isLlamaServer, isLmStudio, wasLmStudio, hasVersion, hasHealth] = await Promise.all([
    answers("/api/version", z.object({ version: z.string() })),
    answers("/props", llamaServerProps.refine(describesServer)),
    answers("/api/v1/models", lmStudioModels),
    answers("/api/v0/models", lmStudioModelsBefore),
    answers("/version", z.object({ version: z.string() })),
    answers("/health", health),
  ]);
  if (isOllama) return "ollama";
  if (isLlamaServer) return "llama-server";
  if (isLmStudio || wasLmStudio) return "lm-studio";
  return hasVersion ? "vllm" : hasHealth ? "mlx-lm" : undefined;
}

/**
 * Identifies the server by its list of models. The list of mlx-lm holds only names, which is little evidence by itself.
 */
function kindByList(
  models: readonly ListedModel[],
  evidence: OpenAiServerKind | undefined,
): OpenAiServerKind | undefined {
  const owner = models[0]?.owned_by;
  if (owner === "vllm") return "vllm";
  if (owner === "llamacpp") return "llama-server";
  const isBare = models.length > 0 && models.every((model) => !model.owned_by && !model.root && !model.meta);
  return evidence === "mlx-lm" && isBare ? "mlx-lm" : undefined;
}

/**
 * Returns the server's list of models, if it answers with one. The list is empty while the server loads its only model.
 */
async function listed(connection: RuntimeConnection, signal: AbortSignal): Promise<readonly ListedModel[] | undefined> {
  try {
    return (await connection.ask(openAiModelList, { path: "/v1/models", signal })).data;
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof ModelLoading ? [] : undefined;
  }
}

const servers: Readonly<Record<OpenAiServerKind, (options: OpenAiServerOptions) => OpenAiServer>> = {
  vllm: openVllm,
  "llama-server": (options) => new LlamaServer(options),
  "lm-studio": (options) => new LmStudioServer(options),
  "mlx-lm": openMlxLm,
  openai: openOtherServer,
};
