import type { Model } from "#shared/model/model.ts";

const habit = ":latest";

/** A model by its id. Who is used to Ollama may write `name:latest` for what is listed as `name`. */
export function findModel(models: readonly Model[], id: string): Model | undefined {
  const exact = models.find((model) => model.id === id);
  if (exact !== undefined || !id.endsWith(habit)) return exact;
  return models.find((model) => model.id === id.slice(0, -habit.length));
}
