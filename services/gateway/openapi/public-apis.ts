import type { z } from "zod";
import { describeChat } from "../apis/chat/describe.ts";
import { describeCompletions } from "../apis/completions/describe.ts";
import { describeEmbeddings } from "../apis/embeddings/describe.ts";
import { describeAudio, describeImages, describeModerations } from "../apis/media/describe.ts";
import { describeMessages } from "../apis/messages/describe.ts";
import { describeModels } from "../apis/models/describe.ts";
import { describeOllama } from "../apis/ollama/describe.ts";
import { describeRanking } from "../apis/ranking/describe.ts";
import { describeResponses } from "../apis/responses/describe.ts";
import { describeTokens } from "../apis/tokens/describe.ts";
import { describeHealth, describeReference } from "./describe-site.ts";

/** The sections of the document, the most used first. */
export const publicApis = [
  describeChat,
  describeResponses,
  describeMessages,
  describeCompletions,
  describeEmbeddings,
  describeRanking,
  describeAudio,
  describeImages,
  describeModerations,
  describeTokens,
  describeModels,
  describeOllama,
  describeHealth,
  describeReference,
];

/** All schemas of the document by name. Bodies are read with the same schemas. */
export const publicSchemas: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  publicApis
    .flatMap(({ schemas }) => schemas.flatMap(Object.entries<z.ZodType>))
    .map(([name, schema]) => [name.charAt(0).toUpperCase() + name.slice(1), schema]),
);

export const schemaNames = new Map(Object.entries(publicSchemas).map(([name, schema]) => [schema, name]));
