/** Starts what consists of parts: all that was put on the stack ends with it, the last first, and at once if it does not come up. */
export async function runningParts<Running extends object>(
  build: (parts: AsyncDisposableStack) => Promise<Running>,
): Promise<Running & AsyncDisposable> {
  const parts = new AsyncDisposableStack();
  try {
    const running = await build(parts);
    return { ...running, [Symbol.asyncDispose]: () => parts.disposeAsync() };
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}
