/** Matches the path of a repository's snapshot in the Hugging Face cache. */
const cachedRepository = /(?:^|[/\\])models--([^/\\]+)[/\\]snapshots[/\\][^/\\]+[/\\]?$/;

/**
 * Returns the id that clients use for a model. A server may name a model by its path. The id is then the name of the
 * folder, or of the file without its part number and `.gguf`. Clients never see paths. Any other name is the id.
 */
export function idByPlace(name: string): string {
  if (!isPlace(name) && !name.endsWith(".gguf")) return name;
  const repository = cachedRepository.exec(name)?.[1];
  if (repository !== undefined) return repository.replace("--", "/");
  const last = name.split(/[/\\]/).findLast((part) => part !== "") ?? name;
  return last.replace(/(-\d{5}-of-\d{5})?\.gguf$/, "") || last;
}

/** Returns the models of a server by id. The first model in the list wins if two have the same id. */
export function byPlacedId<Listed extends { readonly id: string }>(listed: readonly Listed[]): Map<string, Listed> {
  const byId = new Map<string, Listed>();
  for (const entry of listed) {
    const id = idByPlace(entry.id);
    if (!byId.has(id)) byId.set(id, entry);
  }
  return byId;
}

function isPlace(name: string): boolean {
  return /^(~|\.{1,2})?[/\\]|^[A-Za-z]:[/\\]/.test(name);
}
