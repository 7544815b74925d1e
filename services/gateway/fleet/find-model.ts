import type { Model } from "#shared/model/model.ts";

const habit = ":latest";

/** `isExact` turns the alias off: `name:latest` then does not mean `name`. */
interface Finding {
  readonly isExact?: boolean | undefined;
}

/** Returns the id that `id` may stand for. Users of Ollama may write `name:latest` for a model listed as `name`. */
export function aliasedId(id: string): string {
  return id.endsWith(habit) ? id.slice(0, -habit.length) : id;
}

/** Returns the model with this id, or with the id that it may stand for. */
export function findModel(models: readonly Model[], id: string, { isExact }: Finding = {}): Model | undefined {
  const exact = withId(models, id);
  return exact !== undefined || isExact === true || !id.endsWith(habit) ? exact : withId(models, aliasedId(id));
}

/** Returns the machines among which `findModel` can find a model, from the machines that offer each id. */
export function findOffering(
  offering: (id: string) => readonly string[],
  id: string,
  { isExact }: Finding = {},
): readonly string[] {
  const exact = offering(id);
  const habitual = isExact !== true && id.endsWith(habit) ? offering(aliasedId(id)) : [];
  if (habitual.length === 0) return exact;
  return exact.length === 0 ? habitual : [...new Set([...exact, ...habitual])];
}

function withId(models: readonly Model[], id: string): Model | undefined {
  for (const model of models) if (model.id === id) return model;
  return undefined;
}
