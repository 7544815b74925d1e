import { z } from "zod";

const asked = z.object({ query: z.string(), documents: z.array(z.string()), top_n: z.int().optional() });

/** Results as model servers send them, the longest document first: its score is its length, less ten. */
export function rankedByLength(body: unknown): { index: number; relevance_score: number }[] {
  const { documents, top_n: most } = asked.parse(body);
  return documents
    .map((text, index) => ({ index, relevance_score: text.length - 10 }))
    .toSorted((a, b) => b.relevance_score - a.relevance_score)
    .slice(0, most);
}
