import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import type { Capabilities } from "#shared/model/model.ts";
import type { DescribedModel } from "../runtime.ts";

/** A demonstration model. All its capabilities are known. */
export type ScriptedModel = Omit<DescribedModel, "capabilities"> & { readonly capabilities: Capabilities };

const nothing: Capabilities = { completion: false, vision: false, embedding: false, tools: false, thinking: false };

/** The creation date of all demonstration models. It is fixed, so that restarts change nothing. */
const createdSeconds = Date.UTC(2026, 0, 1) / 1_000;

function demonstration(id: string, capabilities: Partial<Capabilities>): ScriptedModel {
  return {
    id,
    createdSeconds,
    ownedBy: "trunkline-demonstration",
    capabilities: { ...nothing, ...capabilities },
    contextTokens: 32_768,
    sizeBytes: 0,
  };
}

const models: readonly ScriptedModel[] = [
  demonstration("scripted", { completion: true, tools: true, thinking: true }),
  demonstration("scripted:plain", { completion: true }),
  demonstration("scripted:vision", { completion: true, vision: true }),
  demonstration("scripted:embed", { embedding: true }),
  { ...demonstration("scripted:mlx", { completion: true }), onAppleMlx: true },
];

/** The demonstration models, one for each kind of model that clients and routing must tell apart. */
export const scriptedModelIds: readonly string[] = models.map(({ id }) => id);

export function chooseScriptedModels(ids: readonly string[]): ScriptedModel[] {
  const unknown = ids.find((id) => !scriptedModelIds.includes(id));
  if (unknown !== undefined) {
    throw new StartFailure(
      exitCodes.config,
      `There is no demonstration model "${unknown}"; choose from ${scriptedModelIds.join(", ")}.`,
    );
  }
  return models.filter(({ id }) => ids.includes(id));
}
