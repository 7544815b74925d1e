/** What asking ended in, for tests that expect it to be thrown. */
export function thrownBy(asked: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(asked).then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );
}
