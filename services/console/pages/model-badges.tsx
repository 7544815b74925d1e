import type { ShownModel } from "#shared/protocol/model.ts";
import { Badges } from "../parts.tsx";

const capabilityWords = { vision: "vision", tools: "tools", thinking: "thinking", embedding: "embeddings" } as const;

/** The capabilities of a model, on all or on some of its machines. */
export function ModelBadges({ offers }: { readonly offers: readonly ShownModel[] }) {
  const words = Object.entries(capabilityWords).flatMap(([capability, word]) => {
    const able = offers.filter(({ capabilities }) => capabilities[capability as keyof typeof capabilityWords]).length;
    return able === 0 ? [] : [able === offers.length ? word : `${word} on ${able} of ${offers.length}`];
  });
  return <Badges words={offers.some((each) => each.apple_mlx) ? [...words, "MLX"] : words} />;
}
