import { modelIdCharactersMax } from "#shared/model/model.ts";
import { stopsMax, toolsMax } from "#shared/protocol/chat-body.ts";
import { completionsMax } from "#shared/protocol/complete-body.ts";
import { embedDimensionsMax, embedInputsMax } from "#shared/protocol/embed-body.ts";
import { limits } from "#shared/protocol/limits.ts";
import { clientBacklogBytesMax } from "../dispatch/write-stream.ts";
import type { BodyLimit } from "../intake/adopt-error.ts";
import { clientRequestCharactersMax } from "../intake/client-request.ts";
import { headerLinesMax, headersBytesMax, urlBytesMax } from "../intake/framing-fault.ts";
import { messagesMax } from "../openai/chat-request.ts";
import { metadataPairsMax, repeatedCharactersMax } from "../openai/responses/response-request.ts";
import { responseCharactersMax } from "../openai/responses/output/response-output.ts";

/** A limit that clients may reach, by the name that its error message uses. */
export interface PublicLimit {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly meaning: string;
}

export function publicLimits({ bodyBytesMax, bodyLimitName }: BodyLimit): PublicLimit[] {
  return [
    limit(bodyLimitName, bodyBytesMax, "bytes", "The body of a request. The operator chooses it."),
    limit("headersBytesMax", headersBytesMax, "bytes", "The headers of a request together."),
    limit("headerLinesMax", headerLinesMax, "headers", "How many headers a request has."),
    limit("urlBytesMax", urlBytesMax, "bytes", "The URL of a request."),
    limit("clientRequestCharactersMax", clientRequestCharactersMax, "characters", "Your own name for a request."),
    limit("modelIdCharactersMax", modelIdCharactersMax, "characters", "The id of a model."),
    limit("messagesMax", messagesMax, "messages", "A conversation, in messages or items."),
    limit("metadataPairsMax", metadataPairsMax, "fields", "The `metadata` of a response."),
    limit(
      "repeatedCharactersMax",
      repeatedCharactersMax,
      "characters",
      "What a response repeats of its request: `instructions`, `tools` and the like.",
    ),
    limit("responseCharactersMax", responseCharactersMax, "characters", "The answer of a response."),
    limit("toolsMax", toolsMax, "tools", "The tools of a request."),
    limit("stopsMax", stopsMax, "texts", "The texts before which an answer ends."),
    limit("completionsMax", completionsMax, "answers", "What a legacy completion may come to: its prompts, times `n`."),
    limit("embedInputsMax", embedInputsMax, "texts", "The texts of one embeddings request."),
    limit("embedDimensionsMax", embedDimensionsMax, "numbers", "A vector."),
    limit("wholeAnswerCharactersMax", limits.wholeAnswerCharactersMax, "characters", "An answer that is not streamed."),
    limit(
      "embeddingsCharactersMax",
      limits.embeddingsCharactersMax,
      "characters",
      "The vectors of one answer, as written.",
    ),
    limit("clientBacklogBytesMax", clientBacklogBytesMax, "bytes", "What a slow reader of a stream may leave unread."),
  ];
}

function limit(name: string, value: number, unit: string, meaning: string): PublicLimit {
  return { name, value, unit, meaning };
}
