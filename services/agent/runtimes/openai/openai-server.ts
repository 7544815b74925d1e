import type { DescribedModel, Runtime } from "../runtime.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";

/** A model, and what its server calls it. */
export interface NamedModel {
  readonly name: string;
  readonly model: DescribedModel;
  readonly loading?: boolean;
}

/** One server of the OpenAI shape: how it differs in requests, and what only its own interfaces tell of its models. */
export interface OpenAiServer extends Pick<Runtime, "working" | "manages" | "close" | "slotsPerModel"> {
  readonly profile: OpenAiProfile;
  /** How many jobs it runs at once, as far as is known yet. */
  readonly slots: number;
  /** Whether it has an interface for embeddings at all. */
  readonly embeds: boolean;
  catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]>;
  /** A model by the id that it had in the catalogue. */
  modelOf(id: string): ServedModel;
}
