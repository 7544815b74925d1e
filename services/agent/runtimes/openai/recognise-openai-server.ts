import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { OtherServer } from "./other-server.ts";
import { LlamaServer } from "./llama-server.ts";
import { llamaServerProps } from "./llama-server-props.ts";
import { LmStudioServer } from "./lm-studio.ts";
import { lmStudioModels, lmStudioModelsBefore } from "./lm-studio-models.ts";
import { MlxLmServer } from "./mlx-lm.ts";
import { openAiCompatible } from "./openai-compatible.ts";
import { ModelLoading, refusalFault } from "./openai-fault.ts";
import { openAiModelList, type ListedModel } from "./openai-model-list.ts";
import { openAiServerKinds, type OpenAiServerKind } from "./openai-profile.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { RuntimeConnection } from "../runtime-connection.ts";
import type { RuntimeSite } from "../runtime-site.ts";
import type { Runtime } from "../runtime.ts";
import { VllmServer } from "./vllm.ts";

export { openAiServerKinds };
export type { OpenAiServerKind };

/** Where each listens when nobody changed it. */
export const openAiServerUrls: Readonly<Record<Exclude<OpenAiServerKind, "openai">, string>> = {
  vllm: "http://127.0.0.1:8000",
  "llama-server": "http://127.0.0.1:8080",
  "lm-studio": "http://127.0.0.1:1234",
  "mlx-lm": "http://127.0.0.1:8080",
};

interface RecogniseOptions {
  /** The operator's word for what is there: then it has to answer with a list of models, and that is all. */
  readonly wanted?: OpenAiServerKind;
  /** Whether a server that is none of those with a name will do as well. */
  readonly allowOther?: boolean;
  readonly signal: AbortSignal;
  /** Where Hugging Face keeps models on this host; in the user's own folder unless told. */
  readonly hubFolder?: string;
  /** The platform of this host, unless told. */
  readonly platform?: string;
}

/**
 * The server at a site, recognised by what it answers; nothing when what answers there is none of them, or nothing does.
 *
 * What listens there may be anything, Trunkline's own gateway included. So nothing under `/v1` is asked for before
 * something else says that it is a model server, unless the operator named the place.
 */
export async function recogniseOpenAiServer(
  site: RuntimeSite,
  options: RecogniseOptions,
): Promise<Runtime | undefined> {
  const connection = new RuntimeConnection({ url: site.url, apiKey: site.apiKey, faultOf: refusalFault });
  let kept = false;
  try {
    const kind = await kindOf(connection, options);
    if (kind === undefined) return undefined;
    kept = true;
    return openAiCompatible({ site, connection, server: serverOf(kind, { site, connection, ...options }) });
  } finally {
    if (!kept) await connection.close();
  }
}

async function kindOf(connection: RuntimeConnection, options: RecogniseOptions): Promise<OpenAiServerKind | undefined> {
  const { wanted, allowOther = false, signal } = options;
  if (wanted !== undefined) return (await listed(connection, signal)) === undefined ? undefined : wanted;
  const evidence = await ownEvidence(connection, signal);
  if (evidence === "ollama") return undefined;
  if (evidence === "llama-server" || evidence === "lm-studio") return evidence;
  if (evidence === undefined && !allowOther) return undefined;
  const models = await listed(connection, signal);
  if (models === undefined) return undefined;
  return kindByList(models, evidence) ?? (allowOther ? "openai" : undefined);
}

/** What its own interfaces say it is. All are asked at once, since each may be slow to say that it does not exist. */
async function ownEvidence(
  connection: RuntimeConnection,
  signal: AbortSignal,
): Promise<OpenAiServerKind | "ollama" | undefined> {
  const answers = (path: string, schema: z.ZodType): Promise<boolean> => answersWith(connection, schema, path, signal);
  const [isOllama, isLlamaServer, isLmStudio, wasLmStudio, hasVersion, hasHealth] = await Promise.all([
    answers("/api/version", z.object({ version: z.string() })),
    answers("/props", llamaServerProps.refine(hasProps)),
    answers("/api/v1/models", lmStudioModels),
    answers("/api/v0/models", lmStudioModelsBefore),
    answers("/version", z.object({ version: z.string() })),
    answers("/health", z.object({ status: z.literal("ok") })),
  ]);
  if (isOllama) return "ollama";
  if (isLlamaServer) return "llama-server";
  if (isLmStudio || wasLmStudio) return "lm-studio";
  return hasVersion ? "vllm" : hasHealth ? "mlx-lm" : undefined;
}

async function answersWith(
  connection: RuntimeConnection,
  schema: z.ZodType,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await connection.ask(schema, { path, signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    // Nobody but llama-server says this, and it says so on every path.
    return path === "/props" && error instanceof ModelLoading;
  }
}

function hasProps(props: z.infer<typeof llamaServerProps>): boolean {
  return Boolean(props.default_generation_settings ?? props.total_slots ?? props.role);
}

/** What its list of models says it is. That of mlx-lm says no more than names, which is little evidence by itself. */
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

/** Its list of models, if it answers with one; empty while it loads the only one it has. */
async function listed(connection: RuntimeConnection, signal: AbortSignal): Promise<readonly ListedModel[] | undefined> {
  try {
    return (await connection.ask(openAiModelList, { path: "/v1/models", signal })).data;
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof ModelLoading ? [] : undefined;
  }
}

function serverOf(
  kind: OpenAiServerKind,
  means: { site: RuntimeSite; connection: RuntimeConnection } & RecogniseOptions,
): OpenAiServer {
  const { site, connection, hubFolder = join(homedir(), ".cache", "huggingface", "hub") } = means;
  const { clock } = site;
  switch (kind) {
    case "vllm":
      return new VllmServer({ connection, clock, hubFolder });
    case "llama-server":
      return new LlamaServer({ connection, clock });
    case "lm-studio":
      return new LmStudioServer({ connection });
    case "mlx-lm":
      return new MlxLmServer({ connection, hubFolder, platform: means.platform ?? process.platform });
    case "openai":
      return new OtherServer({ connection });
  }
}
