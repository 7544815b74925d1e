/** Characters shown of one name and of a whole path. Names come from the client, and may be as long as a body. */
export const nameCharactersMax = 64;
export const paramCharactersMax = 512;

type Path = readonly PropertyKey[];

/** Returns a path as OpenAI writes it: `messages[2].content[0].type`. A path or name that is too long is cut. */
export function paramOf(path: Path): string {
  return path.reduce<string>(within, "");
}

function within(holder: string, step: PropertyKey): string {
  if (holder.length > paramCharactersMax) return holder;
  const dot = holder === "" ? "" : ".";
  const param = holder + (typeof step === "number" ? `[${step}]` : dot + shown(String(step)));
  return param.length > paramCharactersMax ? `${param.slice(0, paramCharactersMax)}…` : param;
}

/**
 * Returns a name that is safe to show: invisible characters, and those that turn the text around them, are replaced.
 */
function shown(name: string): string {
  const cut = name.length > nameCharactersMax ? `${name.slice(0, nameCharactersMax)}…` : name;
  return /^[\x20-\x7e]*$/.test(cut) ? cut : cut.toWellFormed().replace(/\p{C}|\p{Zl}|\p{Zp}/gu, "\ufffd");
}
