import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { modelsPerMachineMax } from "#shared/protocol/model.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import type { Question, RuntimeConnection } from "../runtime-connection.ts";

/** Returns the schema of a field that only describes a model. A malformed one counts as missing. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().catch(undefined);
}
export const optionalCount = optional(z.int().positive());
export const optionalText = optional(z.string());

/** The answer of `/v1/models`, with the extra fields of some servers. An empty list may be null. */
export const openAiModelList = z.object({
  data: z
    .array(
      z.object({
        id: z.string(),
        owned_by: optionalText,
        // speaches
        task: optionalText,
        // vLLM
        root: optionalText,
        parent: optionalText,
        max_model_len: optionalCount,
        // llama-server
        status: optional(z.object({ value: z.string(), args: optional(z.array(z.string())) })),
        path: optionalText,
        context_length: optionalCount,
        meta: optional(
          z
            .object({
              n_ctx: z.int().positive(),
              size: z.number().positive(),
              n_params: optionalCount,
              ftype: optionalText,
            })
            .partial(),
        ),
      }),
    )
    .nullable()
    .transform((entries) => (entries ?? []).slice(0, modelsPerMachineMax)),
});
export type ListedModel = z.infer<typeof openAiModelList>["data"][number];

/** Returns the organisation of a name in the form of Hugging Face, `org/name`. */
export function organisationIn(name: string): string | undefined {
  return /^([\w.-]+)\/[\w.:@-]+$/.exec(name)?.[1];
}

/** Matches a path, absolute or relative, on any system. */
const place = /^(~|\.{1,2})?[/\\]|^[A-Za-z]:[/\\]/;

/** Matches the path of a repository's snapshot in the Hugging Face cache. */
const cachedRepository = /(?:^|[/\\])models--([^/\\]+)[/\\]snapshots[/\\][^/\\]+[/\\]?$/;

/**
 * Returns the id that clients use for a model. A server may name a model by its path. The id is then the name of the
 * folder, or of the file without its part number and `.gguf`. Clients never see paths. Any other name is the id.
 */
export function idByPlace(name: string): string {
  if (!place.test(name) && !name.endsWith(".gguf")) return name;
  const repository = cachedRepository.exec(name)?.[1];
  if (repository !== undefined) return repository.replace("--", "/");
  const last = name.split(/[/\\]/).findLast((part) => part !== "") ?? name;
  return last.replace(/(-\d{5}-of-\d{5})?\.gguf$/, "") || last;
}

/** Returns the models of a server by id. The first model in the list wins if two have the same id. */
export function byPlacedId<Listed extends { readonly id: string }>(listed: readonly Listed[]): Map<string, Listed> {
  const byId = new Map<string, Listed>();
  for (const entry of listed) {
    const id = idByPlace(entry.id);
    if (!byId.has(id)) byId.set(id, entry);
  }
  return byId;
}

/**
 * The longest wait of a catalogue for the result of a probe. A busy server takes longer, and a later catalogue then has
 * the result.
 */
export const probePatienceMs = 400;

/**
 * The results of small requests to a server, one for each question. A probe outlives the catalogue that started it. A
 * busy server therefore gets one probe, and not one for every catalogue. A later catalogue repeats a failed probe.
 */
export class PatientProbes<Finding extends object> {
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  #probes = new Map<string, Promise<Partial<Finding>>>();

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
  }

  /** Returns the finding, or an empty object while it is unknown. */
  find(
    question: string,
    ask: (signal: AbortSignal) => Promise<Finding>,
    signal: AbortSignal,
  ): Promise<Partial<Finding>> {
    const probes = this.#probes;
    const probe = probes.getOrInsertComputed(question, () =>
      ask(this.#closed.signal).catch(() => {
        probes.delete(question);
        return {};
      }),
    );
    return Promise.race([probe, sleep(this.#clock, probePatienceMs, signal).then(() => ({}))]);
  }

  /** Returns an earlier finding without a probe. */
  async known(question: string): Promise<Partial<Finding>> {
    return (await this.#probes.get(question)) ?? {};
  }

  /** Forgets all findings, because another server may answer from now on. */
  forget(): void {
    this.#probes = new Map();
  }

  close(): void {
    this.#closed.abort(new Error("the runtime is let go of"));
  }
}

/** Returns true if a server answers a small request. Rejects if it is busy or loads its model. */
export async function passesProbe(
  connection: RuntimeConnection,
  answer: z.ZodType,
  question: Question,
): Promise<boolean> {
  try {
    await connection.ask(answer, question);
    return true;
  } catch (error) {
    if (Fault.from(error).code === "server_is_overloaded") throw error;
    return false;
  }
}

/** Requests one vector. Rejects when the server does not embed with this model. */
export async function probeEmbedding(connection: RuntimeConnection, model: string, signal: AbortSignal): Promise<void> {
  const embeds = z.object({ data: z.array(z.unknown()) });
  await connection.ask(embeds, { path: "/v1/embeddings", body: { model, input: "a" }, signal });
}
