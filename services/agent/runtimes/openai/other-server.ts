import { z } from "zod";
import type { FurtherAbility } from "#shared/protocol/model.ts";
import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";
import { PathUnknown } from "./openai-fault.ts";
import { probeTranscription } from "./openai-media.ts";
import { PatientProbes, byPlacedId, openAiModelList, type ListedModel, organisationIn } from "./openai-models.ts";
import { plainServer, type OpenAiProfile, type OpenAiServer, type OpenAiServerOptions } from "./openai-profile.ts";
import { SlotsByLoad } from "./slots-by-load.ts";

/**
 * Any other OpenAI-shaped server. The adapter assumes that it honours the fields that OpenAI does, and checks what its
 * answers can show.
 */
export const otherServer: OpenAiProfile = {
  ...plainServer,
  kind: "openai",
  honoured: honouring("logprobs", "top_logprobs", "logit_bias", "response_format"),
  prefill: "as-the-template",
  thinking: (effort) => ({ reasoning_effort: effort }),
  failsSilently: true,
  mayIgnoreLogprobs: true,
  texts: { honoured: honouringInTexts("logprobs", "logit_bias"), takesEmpty: true, answerTokensUnset: 16 },
};

/** The owner of every model in the list of llama-cpp-python's server, and of no other server. */
const llamaCppPythonOwner = "me";

const transcriptionTask = "automatic-speech-recognition";

/** The tasks that speaches reports for its models, in the words of Hugging Face; it chats with none of them. */
const abilitiesOfTask = new Map<string, readonly FurtherAbility[]>([
  [transcriptionTask, ["transcription"]],
  ["text-to-speech", ["speech"]],
  ["text-to-image", ["image"]],
  ["voice-activity-detection", []],
  ["speaker-embedding", []],
  ["speaker-diarization", []],
]);

/** The owner of every model in the list of Kokoro-FastAPI. */
const kokoroOwner = "kokoro";

/** LocalAI's list of the words for what each model can do. Its list of models has names alone. */
const localAiModels = z.object({
  data: z.array(z.object({ id: z.string(), capabilities: z.array(z.string()).nullish() })),
});

const abilityOfWord: Readonly<Record<string, FurtherAbility>> = {
  rerank: "rerank",
  transcript: "transcription",
  tts: "speech",
  image: "image",
};

/**
 * The model of a server without a list that transcribes: whisper.cpp's serves one model, whatever a request names. Clients of
 * OpenAI's ask for this name unless told.
 */
const unlistedTranscriber = "whisper-1";

type Abilities = Pick<DescribedModel, "capabilities" | "furtherAbilities">;

/** Returns what LocalAI tells of its models, by name; nothing for any other server. */
async function localAiAbilities(
  connection: RuntimeConnection,
  models: readonly ListedModel[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Abilities>> {
  if (models.length === 0 || models.some(({ owned_by: owner }) => owner)) return new Map();
  const path = "/v1/models/capabilities";
  const told = await connection.ask(localAiModels, { path, signal }).catch(() => ({ data: [] }));
  return new Map(
    told.data.map(({ id, capabilities }) => {
      const words = capabilities ?? [];
      const can = (...wanted: readonly string[]): boolean => wanted.some((word) => words.includes(word));
      const [vision, tools, thinking] = [can("vision"), can("tools"), can("thinking")];
      const able = { completion: can("chat", "completion"), embedding: can("embeddings"), vision, tools, thinking };
      return [id, { capabilities: able, furtherAbilities: words.flatMap((word) => abilityOfWord[word] ?? []) }];
    }),
  );
}

function abilitiesOf({ task, owned_by: owner }: ListedModel): Abilities {
  const furtherAbilities = owner === kokoroOwner ? (["speech"] as const) : abilitiesOfTask.get(task ?? "");
  return furtherAbilities ? { capabilities: { completion: false }, furtherAbilities } : { capabilities: {} };
}

/** Returns a server that reports its list of models. The operator declares the capabilities that it does not report. */
export function openOtherServer({ connection, clock }: OpenAiServerOptions): OpenAiServer {
  /** True for llama-cpp-python's server, which works on one request at a time and leaves a stream for the next. */
  let interrupts = false;
  const byLoad = new SlotsByLoad({ connection, clock });
  const probes = new PatientProbes<{ readonly transcribes: boolean }>({ clock });

  async function listOrTranscriber(signal: AbortSignal): Promise<readonly ListedModel[]> {
    try {
      return (await connection.ask(openAiModelList, { path: "/v1/models", signal })).data;
    } catch (error) {
      if (!(error instanceof PathUnknown)) {
        probes.forget();
        throw error;
      }
      const probe = async (until: AbortSignal) => ({
        transcribes: await probeTranscription(connection, unlistedTranscriber, until),
      });
      const { transcribes } = await probes.find(unlistedTranscriber, probe, signal);
      if (transcribes !== true) throw error;
      return [{ id: unlistedTranscriber, owned_by: "whisper", task: transcriptionTask }];
    }
  }

  return {
    profile: otherServer,
    embeds: true,
    reranks: true,
    get slots() {
      return interrupts ? 1 : byLoad.slots;
    },
    get guessesSlots() {
      return byLoad.isGuess && !interrupts;
    },
    async catalogue(signal) {
      const data = await listOrTranscriber(signal);
      await byLoad.begin(signal);
      interrupts = data.length > 0 && data.every((model) => model.owned_by === llamaCppPythonOwner);
      const told = await localAiAbilities(connection, data, signal);
      return [...byPlacedId(data)].map(([id, model]) => ({
        id,
        name: model.id,
        interrupts,
        ownedBy: model.owned_by || organisationIn(id) || "openai",
        ...(told.get(model.id) ?? abilitiesOf(model)),
        contextTokens: model.max_model_len ?? undefined,
      }));
    },
    close: async () => {
      probes.close();
      byLoad.close();
    },
  };
}
