import { connect } from "node:net";
import { OwnedChild } from "../harness/owned-child.ts";
import { until } from "../harness/until.ts";

/** Starts the far end, which lists these models, and comes back when it listens. */
export async function startFarEnd(program: string, port: number, models: readonly string[]): Promise<OwnedChild> {
  const child = await OwnedChild.start({ binary: program, args: [`${port}`, ...models], environment: {} });
  await until(() => accepts(port), { what: `the far end to listen at ${port}` });
  return child;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const tell = (answers: boolean): void => {
      socket.destroy();
      resolve(answers);
    };
    socket.once("connect", () => tell(true)).once("error", () => tell(false));
  });
}
