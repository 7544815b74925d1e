/**
 * Returns the token limit to send to a server. If the client set no limit and the server has a default limit, this is
 * the estimated rest of the window. It is never less than the server's default.
 */
export function answerTokens(limit: {
  readonly tokensMax: number | undefined;
  /** The server's default limit for an answer, if it has one. */
  readonly unset: number | undefined;
  /** True if the server refuses a limit that is more than the window. */
  readonly refusesOverWindow: boolean;
  readonly estimatedTokens: () => number;
  readonly contextWindow: number;
}): number | undefined {
  const { tokensMax, unset, contextWindow } = limit;
  if (tokensMax !== undefined) return limit.refusesOverWindow ? Math.min(tokensMax, contextWindow) : tokensMax;
  return unset === undefined ? undefined : Math.max(contextWindow - limit.estimatedTokens(), unset);
}
