/**
 * The limit of an answer that a server is to be told. Where none was asked for, and the server would cut the answer short
 * on its own, that is what the window leaves by a rule of thumb, but no less than the server would give.
 */
export function answerTokens(limit: {
  readonly tokensMax: number | undefined;
  /** Where the server cuts an answer short that has no limit, if it does. */
  readonly unset: number | undefined;
  /** Whether it refuses a limit that is more than the window. */
  readonly refusesOverWindow: boolean;
  readonly estimatedTokens: () => number;
  readonly contextWindow: number;
}): number | undefined {
  const { tokensMax, unset, contextWindow } = limit;
  if (tokensMax !== undefined) return limit.refusesOverWindow ? Math.min(tokensMax, contextWindow) : tokensMax;
  return unset === undefined ? undefined : Math.max(contextWindow - limit.estimatedTokens(), unset);
}
