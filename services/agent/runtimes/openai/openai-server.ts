import type { DescribedModel, Runtime } from "../runtime.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";

/** A model, and its name at the server. */
export interface NamedModel {
  readonly name: string;
  readonly model: DescribedModel;
  readonly loading?: boolean;
}

/** One OpenAI-shaped server: its profile, and the facts of its models that only its own interfaces report. */
export interface OpenAiServer extends Pick<Runtime, "working" | "manages" | "close" | "slotsPerModel"> {
  readonly profile: OpenAiProfile;
  /** The number of jobs that the server runs at once, as far as is known yet. */
  readonly slots: number;
  /** True if the server has an interface for embeddings. */
  readonly embeds: boolean;
  catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]>;
  /** Returns a model by its id in the catalogue. */
  modelOf(id: string): ServedModel;
}
